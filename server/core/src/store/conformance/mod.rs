//! Every promise of a store, as a test that runs on each of them.

mod approvals;
mod changes;
#[path = "../../../../tests/integration/support/cluster.rs"]
pub(crate) mod cluster;
mod duplicates;
mod errands;
mod expiry;
mod families;
mod hidden;
mod hooks;
mod keeping;
mod moving_on;
mod notifications;
mod on_held_keys;
mod on_locks;
mod on_servers_clocks;
mod on_several;
mod quotas;
mod reports;
mod runs;
mod search;
mod second_look;
mod submissions;
mod sweeping;
mod views;

use super::{
    Arrived, Claim, Effect, Ending, Held, Hold, Intent, ListScope, Made, Meaning, NewPrincipal, RequestList,
    Run, Scope, Store, StoredRequest, Submission, Submitted, Tally, Turn, postgres::Postgres, sqlite::Sqlite,
};
use crate::answer::{Answer, AnswerKind};
use domain::{
    command::{Command, Operation},
    id::{PrincipalId, RequestId, ResourceId, SubmissionId, TokenId},
    key::SubmissionKey,
    label::Labels,
    name::Name,
    role::{PortalRole, TeamRole},
    search::{Cursor, Search},
    state::{RequestState, Resolution},
    submission::{Channel, SubmissionOutcome},
    time::Moment,
    view::{EventEntry, Object, RequestView, TokenView},
};
use serde_json::json;
use sqlx::ConnectOptions;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

/// A store on an empty database, with what tests need to talk to it.
struct Bench {
    store: Arc<dyn Store>,
    next: AtomicU64,
    place: Place,
}

/// Where a database is.
enum Place {
    Folder(tempfile::TempDir),
    Address(String),
}

impl Place {
    /// Opens the database there, as one more server does.
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Folder(folder) => Arc::new(Sqlite::open(&folder.path().join("keyturn.db")).await.unwrap()),
            Self::Address(address) => Arc::new(Postgres::open(address).await.unwrap()),
        }
    }

    /// Has the database look at what its tables hold, so that it knows how to read them.
    async fn take_stock(&self) {
        if let Self::Address(address) = self {
            let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
            sqlx::query("ANALYZE").execute(&mut options.connect().await.unwrap()).await.unwrap();
        }
    }
}

impl Bench {
    async fn sqlite() -> Self {
        Self::at(Place::Folder(tempfile::tempdir().unwrap())).await
    }

    /// On PostgreSQL, where it is the database that tells the time: in this one, the time that a test says it is.
    async fn postgres() -> Self {
        let address = cluster::Cluster::shared().database();
        let bench = Self::at(Place::Address(address.clone())).await;
        let tell =
            "CREATE OR REPLACE FUNCTION keyturn_now(servers_own BIGINT) RETURNS BIGINT LANGUAGE sql STABLE AS
                    $$ SELECT servers_own $$";
        let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
        sqlx::query(tell).execute(&mut options.connect().await.unwrap()).await.unwrap();
        bench
    }

    /// Runs a statement beside the store.
    async fn sql(&self, statement: &'static str) {
        match &self.place {
            Place::Folder(folder) => {
                let options =
                    sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("keyturn.db"));
                sqlx::query(statement).execute(&mut options.connect().await.unwrap()).await.unwrap();
            }
            Place::Address(address) => {
                let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
                sqlx::query(statement).execute(&mut options.connect().await.unwrap()).await.unwrap();
            }
        }
    }

    async fn at(place: Place) -> Self {
        Self { store: place.open().await, next: AtomicU64::new(1), place }
    }

    fn id(&self) -> Uuid {
        Uuid::from_u64_pair(0x0190_0000_0000_7000, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Later than every ID made before, so that the newest row is the one made last.
    fn now(&self) -> Moment {
        at(1_000_000 + i64::try_from(self.next.load(Ordering::Relaxed)).unwrap())
    }

    fn arrived(&self, scope: Scope, operation: Operation) -> Arrived {
        Arrived {
            id: SubmissionId(self.id()),
            scope,
            request: None,
            operation: operation.as_str(),
            outcome: SubmissionOutcome::First,
            problem: None,
            channel: Channel::Api,
            sent_by: "ann".into(),
            token_label: Some("ci".into()),
            address: Some("127.0.0.1".into()),
            correlation_id: None,
            labels: "{}".into(),
            at: self.now(),
        }
    }

    fn create(&self, scope: &Scope, vm: &str, size: &str) -> Submission {
        let (id, now) = (RequestId(self.id()), self.now());
        let parameters = object(&json!({ "size": size }));
        let view = RequestView {
            id,
            team: Name::parse(&scope.team).unwrap(),
            offering: name("vm"),
            offering_version: "1".into(),
            resource_type: name("vm"),
            name: name(vm),
            action: "create".into(),
            state: RequestState::Queued,
            reason: None,
            attempt: 1,
            parameters: parameters.clone(),
            patch: None,
            desired: None,
            labels: Labels::default().shown_with(&id.to_string()),
            correlation_id: id.to_string(),
            parent_id: None,
            requested_by: "ann".into(),
            channel: Channel::Api,
            outputs: Object::new(),
            secret_outputs: Vec::new(),
            created_at: now,
            updated_at: now,
            finished_at: None,
            duplicate: None,
            approval: None,
        };
        let answer = Answer::of_request(AnswerKind::Accepted, &view).unwrap();
        let mut arrived = self.arrived(scope.clone(), Operation::Create);
        arrived.request = Some(id);
        Submission {
            arrived,
            meaning: meaning(u8::try_from(size.len()).unwrap()),
            command: Some(Command::on(Operation::Create, vm.into(), parameters)),
            effect: Effect::Create {
                request: Box::new(StoredRequest {
                    view,
                    principal: scope.principal,
                    resource: ResourceId(self.id()),
                }),
                schema_digest: "digest".into(),
                answer,
                second_look: None,
                hidden: None,
                cost: 1,
            },
            turn: Turn::default(),
        }
    }

    fn decision(&self, scope: Scope, operation: Operation, effect: Effect) -> Submission {
        Submission {
            arrived: self.arrived(scope, operation),
            meaning: meaning(9),
            command: Some(Command::on(operation, "target".into(), Object::new())),
            effect,
            turn: Turn::default(),
        }
    }

    async fn created(&self, key: &str, vm: &str) -> RequestId {
        match self.store.submit(self.create(&scope(key), vm, "small")).await.unwrap() {
            Submitted::First(_, Some(id)) => id,
            other => panic!("not a first: {other:?}"),
        }
    }

    async fn taken(&self, worker: &str, now: Moment) -> Run {
        self.store.take_run(worker, now, LEASE).await.unwrap().expect("a run is due")
    }

    async fn ended(&self, hold: Hold, state: RequestState, now: Moment) -> Held {
        self.store.end_run(hold, Ending::without_outputs(state, None), now).await.unwrap()
    }

    async fn state(&self, id: RequestId) -> RequestState {
        self.store.request(id).await.unwrap().unwrap().view.state
    }

    async fn claim(&self, key: &str) -> Option<Claim> {
        self.store.claimed(&scope(key)).await.unwrap().map(|(claim, _)| claim)
    }

    async fn all(&self, size: u32, after: Option<(Moment, Uuid)>) -> domain::view::Page<RequestView> {
        let after = after.map(|(at, id)| Cursor { at, id });
        let search = Search::default().with_size(size).from(after);
        self.store.requests(RequestList { search, ..everything() }).await.unwrap()
    }

    fn someone(&self, who: &str, role: PortalRole, team: Option<&str>) -> NewPrincipal {
        NewPrincipal {
            id: PrincipalId(self.id()),
            name: who.into(),
            role,
            password_hash: None,
            team: team.map(|team| (name(team), TeamRole::Member)),
        }
    }
}

fn everything() -> RequestList {
    RequestList { scope: ListScope::All, search: Search::default().with_size(10) }
}

fn at(millis: i64) -> Moment {
    Moment::from_millis(millis)
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn object(value: &serde_json::Value) -> Object {
    value.as_object().unwrap().clone()
}

fn meaning(seed: u8) -> Meaning {
    Meaning { fingerprint: [seed; 32], body_hash: [seed; 32], key_version: 1 }
}

fn scope(key: &str) -> Scope {
    scope_of("blue", 1, key)
}

fn scope_of(team: &str, principal: u128, key: &str) -> Scope {
    Scope {
        team: team.into(),
        principal: PrincipalId(Uuid::from_u128(principal)),
        key: SubmissionKey::parse(key.as_bytes()).unwrap(),
    }
}

use approvals::*;
use changes::*;
use duplicates::*;
use errands::*;
use expiry::*;
use families::*;
use hidden::*;
use hooks::*;
use keeping::*;
use moving_on::*;
use notifications::*;
use quotas::*;
use reports::*;
use runs::*;
use search::*;
use second_look::*;
use submissions::*;
use sweeping::*;
use views::*;

/// Runs each promise on each database.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(super::Bench::sqlite().await).await;
            })*
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(super::Bench::postgres().await).await;
            })*
        }
    };
}

promises! {
    a_first_submission_leaves_the_whole_of_it
    a_repeat_gets_the_first_answer_and_makes_nothing
    a_key_is_unique_within_its_full_scope_only
    of_many_at_once_exactly_one_is_first
    a_name_belongs_to_one_living_resource
    a_refused_name_leaves_the_key_free
    a_bad_submission_never_fails_its_neighbours
    a_run_belongs_to_one_worker_until_its_lease_ends
    a_worker_that_lost_its_lease_writes_nothing
    a_run_given_back_waits_for_its_time
    a_run_waits_for_work_elsewhere_and_is_woken
    an_errand_is_kept_once_for_its_work_and_only_by_who_holds_the_run
    a_report_is_taken_in_once_with_its_effect
    a_success_after_another_end_is_an_orphan
    reports_out_of_order_never_move_what_is_known_backwards
    a_report_of_an_earlier_attempt_leaves_the_later_one_alone
    a_success_of_any_attempt_of_what_ended_otherwise_is_an_orphan_once
    a_success_of_an_earlier_attempt_beside_a_later_one_is_an_orphan_until_it_is_taken_over
    a_report_that_fails_half_way_is_not_seen
    of_reports_that_come_to_two_servers_at_once_each_is_taken_in_once
    reports_that_come_again_are_counted_as_duplicates
    who_reported_too_often_may_still_report_the_end
    an_orphan_is_kept_a_retention_after_it_was_reported
    with_taking_back_the_end_of_what_was_begun_counts_no_more
    what_was_reported_as_made_is_taken_back_only_by_decision
    what_is_sealed_of_errands_is_found_and_sealed_anew
    what_is_given_up_at_the_moment_of_news_is_looked_at_once_more
    a_run_is_turned_unless_somebody_decided_otherwise
    what_was_begun_is_taken_before_what_was_not
    a_failed_create_frees_its_name_and_an_unknown_one_holds_it
    success_shows_outputs_and_keeps_secrets_sealed
    canceling_before_the_start_ends_it_at_once
    canceling_a_started_run_tells_its_worker
    a_failure_that_leaves_something_does_not_outrun_a_stop
    a_retry_opens_the_next_attempt_and_reserves_the_name_again
    an_unknown_outcome_is_resolved_once
    a_persons_word_to_try_again_is_used_up_by_what_is_begun
    a_run_that_its_holder_does_not_know_is_passed_on
    earlier_holds_never_fit_a_run_that_was_queued_again
    changes_move_the_version_and_are_carried_out_in_order
    a_failed_change_goes_back_and_later_ones_are_worked_out_without_it
    a_change_that_waits_is_canceled_at_once_and_one_at_work_is_stopped
    of_ten_changes_of_one_version_one_is_accepted
    a_delete_ends_a_life_once_and_its_name_begins_another
    changes_lose_against_a_delete
    a_change_done_at_its_resources_end_never_brings_it_back
    a_create_that_is_deleted_is_stopped_and_holds_its_name_until_the_teardown
    a_delete_that_nobody_began_is_taken_back
    a_failed_change_is_tried_again_only_while_nothing_else_was_accepted
    what_waits_for_a_create_that_fails_is_canceled
    an_unknown_change_holds_back_the_next_until_it_is_decided
    a_clock_that_servers_share_is_told
    repeats_are_history_and_past_a_thousand_only_counted
    what_is_only_counted_stands_beside_what_is_written_down
    duplicates_are_counted_by_time_rule_and_source
    repeats_that_are_only_counted_are_duplicates_too
    duplicates_under_another_key_are_counted_with_their_claim
    creates_of_an_offering_are_read_page_by_page
    views_are_a_persons_own_unless_they_are_shared
    a_view_of_the_same_name_takes_the_place_of_the_other_and_they_are_few
    pages_are_stable_while_rows_arrive
    a_history_goes_on_where_one_left_off
    no_text_is_too_strange_to_keep_or_to_look_for
    a_search_finds_what_its_conditions_say
    frequent_and_rare_matches_are_read_alike
    no_character_of_a_value_means_anything_but_itself
    what_was_sent_for_what_was_there_is_found_with_it
    words_are_found_before_and_after_they_are_indexed
    a_history_of_before_is_found_and_counted
    people_teams_and_tokens_are_kept
    only_the_first_set_up_counts
    sessions_end_and_are_swept
    a_setting_is_set_once
    what_is_kept_survives_reopening
    the_same_under_another_key_is_asked_and_burns_no_key
    a_confirmed_duplicate_goes_through_and_is_recorded
    what_came_to_nothing_is_no_duplicate_and_who_cannot_answer_is_not_asked
    two_of_the_same_at_the_same_moment_see_each_other
    keys_become_tombstones_in_place_when_their_retention_is_over
    keys_without_a_request_count_from_themselves
    a_request_that_is_opened_again_is_no_hole
    a_tombstone_stays_while_its_request_is_open_again
    who_opens_a_request_again_finds_its_keys_alike_whether_they_were_swept_or_not
    the_keys_of_a_change_that_is_tried_again_are_kept_until_its_next_end
    sweeping_goes_on_in_bounded_batches_and_beside_others
    one_claim_is_dropped_only_when_its_time_is_over
    a_hook_is_changed_from_the_version_that_was_seen
    two_secrets_count_during_a_rotation_and_no_third
    a_removed_hook_is_known_and_keeps_nothing
    of_each_hook_the_last_deliveries_stay
    what_is_sealed_of_hooks_is_found_and_sealed_anew
    secret_parameters_are_kept_with_their_requests_until_their_life_ends
    secret_parameters_of_a_failed_create_wait_for_another_try_until_its_retention_ends
    secret_parameters_are_found_by_their_seal_and_sealed_anew
    it_is_known_what_each_version_of_the_key_is_needed_for
    the_end_of_a_step_wakes_its_parent
    a_step_that_ends_while_its_parent_is_held_is_not_missed
    only_a_step_wakes_whom_it_names_as_parent
    who_lost_the_parents_run_asks_for_no_step
    a_chain_is_found_from_any_of_it_and_within_bounds
    what_happened_is_told_to_whom_it_concerns_and_no_one_else
    a_notification_is_sent_by_one_at_a_time_and_again_when_its_lease_ends
    who_cannot_be_told_is_switched_off
    one_that_arrives_makes_up_for_those_that_did_not
    notifications_end_with_what_they_kept
    shared_secrets_are_sealed_anew
    an_end_is_told_of_from_its_moment_on_once_by_one_of_many_servers
    an_end_that_moves_is_told_of_anew_and_one_that_stays_is_not
    what_is_deleted_is_never_told_of
    a_time_to_live_counts_from_when_it_was_made
    ends_are_told_of_in_bounded_batches_the_nearest_first
    what_waits_for_approval_is_told_of_once_and_not_begun
    a_team_gets_what_fits_into_its_quota_and_no_more
    a_limit_is_set_lowered_and_taken_away
    what_gives_its_name_back_gives_its_share_back
    a_retry_takes_its_share_again_or_is_refused
    what_has_no_place_is_not_asked_about
    teams_with_and_without_a_limit_are_decided_together
    who_is_refused_stands_in_nobodys_way
    repeats_of_what_is_refused_are_refused_alike
    of_many_at_once_at_two_stores_exactly_as_many_as_fit_are_made
    what_needs_approval_holds_key_and_name_and_has_no_run
    what_is_approved_is_carried_out_and_says_by_whom
    what_is_rejected_frees_its_name_and_counts_from_there
    a_canceled_wait_is_over_and_takes_no_decision
    what_nobody_decides_about_in_time_is_rejected_once
    a_change_that_waits_keeps_its_turn_and_goes_back_when_it_is_rejected
    an_approved_change_waits_for_those_before_it
    a_delete_that_waits_stops_nothing_before_it_is_approved
    of_decisions_at_once_on_several_servers_one_counts
}
