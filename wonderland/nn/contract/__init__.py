"""What every block keeps to: shapes, masks, states, arguments."""
