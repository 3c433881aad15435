//! Quotas as callers meet them: refused with what is used, how high the limit is and what was asked for, and no key burned.

use crate::testing::{
    House, Plan,
    composite::{pair, pairs},
    key, vm, with_fake,
};
use bytes::Bytes;
use domain::{
    plan::PlannedOutcome,
    problem::ProblemKind::{InvalidParameters, NotFound, QuotaExceeded},
    quota::{HIGHEST_LIMIT, QuotaShort, QuotaUse},
    state::RequestState::{Canceled, Failed, Succeeded},
    submission::SubmissionOutcome,
};
use serde_json::Value;

async fn limited(house: &House, limit: u64) -> QuotaUse {
    house.portal.set_team_quota("alpha", Some(limit)).await.unwrap()
}

#[tokio::test]
async fn what_has_no_place_is_refused_and_runs_under_the_same_key_once_there_is_room() {
    let (mut house, fake) = with_fake().await;
    house.work();
    assert_eq!(limited(&house, 1).await, QuotaUse { used: 0, limit: Some(1) });
    let one = house.create("one").await;
    let refused = house.send("k", &vm("two")).await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.quota),
        (QuotaExceeded, Some(QuotaShort { used: 1, limit: 1, asked: 1 }))
    );
    for part in ["alpha uses 1", "quota of 1", "1 more", "Delete", "raised"] {
        assert!(refused.detail.contains(part), "{}", refused.detail);
    }
    house.reaches(one, Succeeded).await;
    assert!(house.send("create-one", &vm("one")).await.unwrap().replayed);
    assert!(house.send("other", &vm("one")).await.unwrap().existing);
    limited(&house, 2).await;
    let two = house.send("k", &vm("two")).await.unwrap();
    assert!(!two.replayed);
    house.reaches(two.request_id.unwrap(), Succeeded).await;
    assert_eq!(fake.things(), 2);
    // The refusal is in the history of the key.
    let of_two = crate::testing::eventually(async || {
        let all = house.store.submissions(two.request_id.unwrap()).await.unwrap().results;
        (all.len() == 2).then_some(all)
    })
    .await;
    let refusals: Vec<_> = of_two.iter().filter(|one| one.outcome == SubmissionOutcome::Refused).collect();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].problem.as_deref(), Some("quota-exceeded"));
}

#[tokio::test]
async fn a_persons_retry_is_refused_by_the_quota_and_goes_through_once_there_is_room() {
    let (mut house, fake) = with_fake().await;
    house.work();
    limited(&house, 1).await;
    fake.behave("one", crate::provisioner::fake::Behaviour::Fail("no room".into()));
    let one = house.create("one").await;
    house.reaches(one, Failed).await;
    fake.behave("one", crate::provisioner::fake::Behaviour::Succeed);
    let two = house.create("two").await;
    house.reaches(two, Succeeded).await;
    let retry = async || house.portal.retry(&house.ann, &one.to_string(), key("again"), Bytes::new()).await;
    let refused = retry().await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.quota),
        (QuotaExceeded, Some(QuotaShort { used: 1, limit: 1, asked: 1 }))
    );
    limited(&house, 2).await;
    retry().await.unwrap();
    house.reaches(one, Succeeded).await;
}

#[tokio::test]
async fn a_dry_run_tells_the_quota_and_meets_it() {
    let (house, _) = with_fake().await;
    let plan = async |body: &Value| {
        house.portal.plan_request(&house.ann, "alpha", body.to_string().as_bytes(), Vec::new()).await
    };
    let quota = plan(&vm("one")).await.unwrap().quota;
    assert_eq!((quota.cost, quota.used, quota.limit), (1, None, None));
    limited(&house, 1).await;
    let quota = plan(&vm("one")).await.unwrap().quota;
    assert_eq!((quota.cost, quota.used, quota.limit), (1, Some(0), Some(1)));
    house.create("one").await;
    let refused = plan(&vm("two")).await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.quota),
        (QuotaExceeded, Some(QuotaShort { used: 1, limit: 1, asked: 1 }))
    );
    let there = plan(&vm("one")).await.unwrap();
    assert_eq!((there.plan.outcome, there.quota.cost), (PlannedOutcome::Existing, 0));
    assert_eq!((there.quota.used, there.quota.limit), (Some(1), Some(1)));
}

#[tokio::test]
async fn a_dry_run_of_what_is_made_of_steps_says_which_of_them_would_have_no_place() {
    let house = House::build(pairs(&crate::provisioner::fake::Fake::default())).await;
    let plan = async || {
        let body = pair("one").to_string();
        house.portal.plan_request(&house.ann, "alpha", body.as_bytes(), Vec::new()).await
    };
    limited(&house, 3).await;
    let planned = plan().await.unwrap();
    assert_eq!((planned.quota.cost, planned.quota.used, planned.quota.limit), (4, Some(0), Some(3)));
    let problems: Vec<_> = planned.plan.steps.iter().map(|step| step.problem.is_some()).collect();
    assert_eq!(problems, [false, false, true]);
    assert!(planned.plan.steps[2].problem.as_ref().unwrap().contains("alpha uses 3 of its quota of 3"));
    limited(&house, 4).await;
    assert!(plan().await.unwrap().plan.steps.iter().all(|step| step.problem.is_none()));
    limited(&house, 0).await;
    assert_eq!(plan().await.unwrap_err().kind, QuotaExceeded);
}

#[tokio::test]
async fn a_step_without_a_place_fails_what_it_is_a_step_of_which_goes_on_once_there_is_room() {
    let fake = crate::provisioner::fake::Fake::default();
    let house = House::at_work(pairs(&fake)).await;
    // Room for the pair itself and its two disks; its machine comes last.
    limited(&house, 3).await;
    let id = house.pair("one").await;
    let reason = house.reaches(id, Failed).await.reason.unwrap();
    assert!(reason.contains("Step machine") && reason.contains("quota of 3"), "{reason}");
    assert!(reason.contains("disk one-disk, disk one-log"), "{reason}");
    // The pair's own share is free again, but the disks take theirs.
    assert_eq!(house.portal.team_quota("alpha").await.unwrap(), QuotaUse { used: 2, limit: Some(3) });
    let retry = async |with: &str| {
        house.portal.retry(&house.ann, &id.to_string(), key(with), Bytes::new()).await.unwrap();
    };
    retry("still-full").await;
    house.reaches(id, Failed).await;
    limited(&house, 4).await;
    retry("room").await;
    house.reaches(id, Succeeded).await;
    assert_eq!((fake.things(), house.portal.team_quota("alpha").await.unwrap().used), (3, 4));
}

#[tokio::test]
async fn a_canceled_request_gives_its_share_back() {
    let (house, _) = with_fake().await;
    limited(&house, 1).await;
    let one = house.create("one").await;
    assert_eq!(house.send("k", &vm("two")).await.unwrap_err().kind, QuotaExceeded);
    house.cancel(one).await.unwrap();
    assert_eq!(house.view(one).await.state, Canceled);
    assert!(!house.send("k", &vm("two")).await.unwrap().replayed);
}

#[tokio::test]
async fn what_was_made_keeps_its_cost_whatever_the_catalog_says_later() {
    let house =
        House::build(Plan::of(crate::provisioner::fake::Fake::default()).offering(|vm| vm.quota_cost = 3))
            .await;
    limited(&house, 5).await;
    house.create("one").await;
    let later = house.beside(|plan| plan.offerings[0].quota_cost = 1).await;
    assert_eq!(later.portal.team_quota("alpha").await.unwrap().used, 3);
    for name in ["two", "three"] {
        later.create(name).await;
    }
    let refused = later.send("k", &vm("four")).await.unwrap_err();
    assert_eq!(refused.quota, Some(QuotaShort { used: 5, limit: 5, asked: 1 }));
}

#[tokio::test]
async fn a_limit_is_set_for_a_team_that_there_is_within_reason() {
    let (house, _) = with_fake().await;
    let set = async |team: &str, limit| house.portal.set_team_quota(team, limit).await;
    assert_eq!(set("nowhere", Some(1)).await.unwrap_err().kind, NotFound);
    assert_eq!(set("Alpha", Some(1)).await.unwrap_err().kind, InvalidParameters);
    assert_eq!(set("alpha", Some(HIGHEST_LIMIT + 1)).await.unwrap_err().kind, InvalidParameters);
    assert_eq!(house.portal.add_team("new", Some(u64::MAX)).await.unwrap_err().kind, InvalidParameters);
    assert_eq!(
        set("alpha", Some(HIGHEST_LIMIT)).await.unwrap(),
        QuotaUse { used: 0, limit: Some(HIGHEST_LIMIT) }
    );
    assert_eq!(set("alpha", None).await.unwrap(), QuotaUse { used: 0, limit: None });
    assert_eq!(house.portal.limit_of(&house.ann, "alpha").await.unwrap(), None);
    house.portal.set_team_quota("beta", Some(4)).await.unwrap();
    assert_eq!(house.portal.limit_of(&house.ann, "beta").await.unwrap_err().kind, NotFound);
    let teams = ["alpha", "beta"].map(|team| domain::name::Name::parse(team).unwrap());
    assert_eq!(house.portal.limits_of(&house.ann, &teams).await.unwrap(), []);
}
