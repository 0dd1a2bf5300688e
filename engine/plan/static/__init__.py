"""A stratum evaluated once: its temporaries and reductions, its paths over shared arrangements, its connected components."""
