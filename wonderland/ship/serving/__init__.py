"""The HTTP server of runs: `wonderland serve RUN`. It needs the extra `serve`."""
