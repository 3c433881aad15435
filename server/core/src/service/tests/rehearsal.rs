//! The rehearsal of a `duplicate_window`: the same as the guard would have said.

use crate::{
    clock::StandingClock,
    provisioner::fake::Fake,
    testing::{House, Plan, standing, vm},
};
use domain::{
    problem::ProblemKind,
    role::{PortalRole, TeamRole},
    submission::Channel,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

async fn house() -> (House, Arc<StandingClock>, crate::Caller) {
    let clock = standing();
    let plan = Plan { clock: clock.clone(), ..Plan::of(Fake::default()) };
    let house = House::build(plan).await;
    let admin = crate::Caller { role: PortalRole::Admin, ..house.ann.clone() };
    (house, clock, admin)
}

#[tokio::test]
async fn a_window_that_the_offering_did_not_have_is_played_over_what_was_requested() {
    let (house, clock, admin) = house().await;
    house.create("one").await;
    clock.advance(30 * MINUTE);
    let two = house.create("two").await;
    // Another team, other parameters, and one that comes after the window.
    let ben = house.person("ben", "beta", TeamRole::Member).await;
    crate::testing::send(&house.portal, &ben, "beta", "k", &vm("three").to_string()).await.unwrap();
    let mut other = vm("four");
    other["parameters"]["size"] = "large".into();
    house.send("other", &other).await.unwrap();
    clock.advance(HOUR);
    house.create("five").await;
    // What had come to nothing is no duplicate; what came to nothing afterwards was one.
    clock.advance(MINUTE);
    house.cancel(two).await.unwrap();
    let hook = house.ann.clone().by(Channel::Hook);
    crate::testing::send(&house.portal, &hook, "alpha", "event", &vm("six").to_string()).await.unwrap();

    let rehearsed = house.portal.rehearse(&admin, "vm", HOUR, 1).await.unwrap();
    let pairs: Vec<_> = rehearsed
        .pairs
        .iter()
        .map(|pair| {
            let (later, earlier) = (pair.later.name.as_str(), pair.earlier.name.as_str());
            (later, earlier, Duration::from_millis(pair.apart_millis.unsigned_abs()), pair.asked)
        })
        .collect();
    assert_eq!(pairs, [("six", "five", MINUTE, false), ("two", "one", 30 * MINUTE, true)]);
    assert_eq!((rehearsed.judged, rehearsed.asked, rehearsed.recorded), (6, 1, 1));
    assert!(rehearsed.complete && rehearsed.current_window_seconds.is_none());
    let wider = house.portal.rehearse(&admin, "vm", 2 * HOUR, 1).await.unwrap();
    assert_eq!((wider.asked, wider.recorded), (2, 1), "five is within two hours of two");
}

#[tokio::test]
async fn the_rehearsal_says_what_the_guard_says() {
    let (house, clock, admin) = house().await;
    let asking = house.beside(|plan| plan.offerings[0].duplicate_window = Some(HOUR)).await;
    asking.create("one").await;
    for (minutes, name) in [(59, "two"), (60, "three"), (61, "four"), (1, "five")] {
        clock.advance(minutes * MINUTE);
        let sent = asking.send(name, &vm(name)).await;
        let asked = sent.is_err();
        if let Err(question) = sent {
            let mut body = vm(name);
            body["confirm_duplicate"] = json!({ "of": question.request, "reason": "a spare" });
            asking.send(name, &body).await.unwrap();
        }
        let rehearsed = house.portal.rehearse(&admin, "vm", HOUR, 1).await.unwrap();
        let would = rehearsed.pairs.iter().any(|pair| pair.later.name.as_str() == name);
        assert_eq!((would, asked), (asked, matches!(name, "two" | "five")), "{name}");
    }
}

#[tokio::test]
async fn only_administrators_rehearse_and_within_bounds() {
    let (house, _, admin) = house().await;
    let refused = house.portal.rehearse(&house.ann, "vm", HOUR, 1).await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::Forbidden);
    for (window, days) in [(Duration::ZERO, 1), (367 * 24 * HOUR, 1), (HOUR, 0), (HOUR, 367)] {
        let refused = house.portal.rehearse(&admin, "vm", window, days).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::InvalidQuery, "{window:?} {days}");
    }
    let nothing = house.portal.rehearse(&admin, "disk", HOUR, 1).await.unwrap_err();
    assert_eq!(nothing.kind, ProblemKind::NotFound);
    let empty = house.portal.rehearse(&admin, "vm", HOUR, 1).await.unwrap();
    assert_eq!((empty.judged, empty.pairs.len()), (0, 0));
    assert!(empty.complete);
}
