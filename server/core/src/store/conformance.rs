//! Every promise of a store, as a test that runs on each of them.
