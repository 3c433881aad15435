//! The portal.
