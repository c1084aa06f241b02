"""Non-interference of random programs on the shipped kernels, against the disclosure table.

A party's private data is changed; whatever another party receives may change only where a row of
the table says so.

================== ============================================================================
``functions``      the functions that generated programs call; ``own_data``, their own ops
``generator``      random chains of programs, as Python source
``dealer``         token kernels in place of randomness: keys, ciphertexts, shares
``opening``        what the holder of certain tokens can read
``lab``            a simulator whose messages are recorded, over threads or HTTP links
``live``           worker processes of the HTTP backend, as their hosts see them
``recorded_links`` logs the messages of workers that import it; ``link_logs`` reads that
``deviation``      a party that does not follow the protocol
``checker``        comparison of two runs against the table; ``live_checker``, of worker processes
``experiment``     one seed: a chain of programs, its runs, the check; ``checking``, of many seeds
``planted``        faults of the analysis that the check finds; ``leaking_kernel``, one of a worker
================== ============================================================================
"""
