//! Promises broken on purpose, and how a database is made to break them.

use crate::testing::{Ground, House};

/// The promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// None.
    Sound,
    /// Keys are not unique: each submission is the first with its own.
    NoUniqueKeys,
    /// The claim is written after the transaction of the request, and some servers end in between.
    ClaimApart,
    /// The write of a worker that lost its lease counts.
    NoFence,
    /// The version that a change is about is looked at before its key.
    VersionFirst,
    /// A key is kept from its first arrival on, whatever becomes of its request.
    KeptFromArrival,
    /// What is being stopped gives its name up at once, before it is gone.
    NameEarly,
    /// The end of a request changes the answer that its key got.
    OtherAnswer,
}

impl Fault {
    /// When the database does what, in SQLite's words and in PostgreSQL's. The names of rows are both's.
    fn trigger(self) -> Option<(&'static str, &'static str, &'static str)> {
        Some(match self {
            Self::Sound | Self::NoFence | Self::VersionFirst => return None,
            Self::NoUniqueKeys => (
                "AFTER INSERT ON claim",
                "UPDATE claim SET key = NEW.key || '-' || NEW.id WHERE id = NEW.id;",
                "UPDATE claim SET key = NEW.key || '-' || NEW.id WHERE id = NEW.id;",
            ),
            // Its server ends before the claim is written; the request is there by then. PostgreSQL comes to this once
            // the first arrival is written as well.
            Self::ClaimApart => (
                "AFTER INSERT ON claim",
                "DELETE FROM claim WHERE id = NEW.id AND key LIKE '%-lost'
                    AND NOT EXISTS (SELECT 1 FROM submission WHERE key = NEW.key);",
                "DELETE FROM claim WHERE id = NEW.id AND key LIKE '%-lost'
                    AND (SELECT count(*) FROM submission WHERE key = NEW.key) <= 1;",
            ),
            Self::KeptFromArrival => (
                "AFTER INSERT ON claim",
                "UPDATE claim SET late = TRUE WHERE id = NEW.id;",
                "UPDATE claim SET late = TRUE WHERE id = NEW.id;",
            ),
            Self::NameEarly => (
                "AFTER UPDATE OF intent ON run",
                "UPDATE resource SET name = lower(hex(NEW.request))
                  WHERE NEW.intent = 'cancel' AND request = NEW.request;",
                "UPDATE resource SET name = replace(NEW.request::text, '-', '')
                  WHERE NEW.intent = 'cancel' AND request = NEW.request;",
            ),
            Self::OtherAnswer => (
                "AFTER UPDATE OF finished_at ON request",
                "UPDATE claim SET body = CAST(body || ' ' AS BLOB) WHERE request = NEW.id AND retired_at IS NULL;",
                "UPDATE claim SET body = body || '\\x20'::bytea WHERE request = NEW.id AND retired_at IS NULL;",
            ),
        })
    }
}

/// Makes the database do what it would do if the promise were not kept.
pub(super) async fn break_it(house: &House, fault: Fault) {
    let Some((when, on_sqlite, on_postgres)) = fault.trigger() else { return };
    let trigger = match house.ground {
        Ground::Sqlite(_) => format!("CREATE TRIGGER broken {when} BEGIN {on_sqlite} END"),
        Ground::Postgres(_) => format!(
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN {on_postgres} RETURN NULL; END $$;
             CREATE TRIGGER broken {when} FOR EACH ROW EXECUTE FUNCTION broken()"
        ),
    };
    house.ground.execute(&trigger).await;
}
