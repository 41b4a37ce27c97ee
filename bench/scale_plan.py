"""The figures of docs/scale.md: one machine, eight GPUs and a thousand nodes, from the cost model and simulations.

python -m bench.scale_plan
"""

from wonderland.understand import (
    Device,
    daly_interval,
    expected_share,
    measure_machine,
    simulated_share,
    step_plan,
    straggler_factor,
    young_interval,
)

YEAR = 365 * 24 * 3600.0
CASES = (
    # name, devices, operations a second reached, memory, link, mean time between failures of one device, parameters, tokens a step, tokens in all
    ("one machine, two cores", 1, None, 24e9, 1e9, 3 * YEAR, 1e7, 16_384, 2e8),
    ("eight GPUs", 8, 3e14, 80e9, 3e11, 5 * YEAR, 1e9, 1 << 20, 2e10),
    ("a thousand nodes of eight", 8000, 3e14, 80e9, 4e10, 5 * YEAR, 7e10, 1 << 24, 1.4e12),
)
SPREAD, SAVE_BYTES_SECOND, RESTART = 0.05, 2e9, 600.0


def main() -> None:
    measured = measure_machine()
    print(f"this machine: {measured.flops / 1e9:.0f} GFLOP/s, {measured.bandwidth / 1e9:.0f} GB/s")
    print(
        f"{'':28}{'step':>9}{'useful':>8}{'memory':>9}{'sharded':>9}{'slowest':>9}{'fails':>10}{'save':>7}{'Young':>8}{'Daly':>8}{'share':>8}{'counted':>8}{'days':>8}"
    )
    for name, count, flops, memory, link, mtbf, parameters, tokens, total in CASES:
        device = Device(flops or 0.5 * measured.flops, memory, link, mtbf)
        whole = step_plan(device, count, parameters=parameters, tokens=tokens)
        shard = step_plan(device, count, parameters=parameters, tokens=tokens, sharded=True)
        plan = whole if whole.memory < 0.8 * memory else shard
        slow = straggler_factor(count, SPREAD, draws=300)
        failures = mtbf / count
        save = max(1.0, 16 * parameters / (SAVE_BYTES_SECOND * max(1, count // 8)))
        young, daly = young_interval(save, failures), daly_interval(save, failures)
        share = expected_share(daly, save, RESTART, failures)
        counted = simulated_share(daly, save, RESTART, failures, hours=300 * failures / 3600)
        days = total / tokens * plan.seconds * slow / share / 86400
        print(
            f"{name:28}{plan.seconds:8.2f}s{plan.efficiency:8.0%}{whole.memory / 1e9:7.1f}GB{shard.memory / 1e9:7.1f}GB{slow:8.2f}x"
            f"{failures / 3600:8.1f} h{save:6.0f}s{young / 60:6.0f} m{daly / 60:6.0f} m{share:8.1%}{counted:8.1%}{days:8.1f}"
        )


if __name__ == "__main__":
    main()
