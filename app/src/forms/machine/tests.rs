//! The form's promises, one test each.

use super::*;
use domain::problem::Versions;

const NOW: u64 = 1_000;

fn opened() -> Machine {
    Machine::open("id-1".into(), false, None)
}

fn problem(kind: ProblemKind, status: u16) -> Problem {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    serde_json::from_value(serde_json::json!({
        "type": format!("/problems/{}", kind.slug()), "title": kind.title(), "status": status, "detail": "d",
        "request": {"id": id, "href": format!("/api/v1/requests/{id}")}
    }))
    .unwrap()
}

fn taken(repeat: bool, existing: bool) -> Reply {
    Reply::Taken { request: "r".into(), repeat, existing }
}

fn answer(machine: &mut Machine, reply: Reply, now: u64) -> Vec<Effect> {
    let turn = machine.turn;
    machine.on(Event::Answered { turn, reply, now, random: u32::MAX })
}

fn sent(machine: &mut Machine) -> u32 {
    let effects = machine.on(Event::Submit { now: NOW });
    assert_eq!(effects[..2], [Effect::TakeValues, Effect::Keep]);
    let [.., Effect::Send { turn }] = effects[..] else { panic!("{effects:?}") };
    turn
}

#[test]
fn a_second_click_does_nothing_while_the_first_is_under_way() {
    let mut form = opened();
    sent(&mut form);
    assert!(!form.is_ready() && form.may_have_arrived());
    assert_eq!(form.on(Event::Submit { now: NOW + 1 }), []);
    assert_eq!(form.on(Event::AsNew { id: "id-2".into(), now: NOW + 1 }), []);
}

#[test]
fn the_button_stays_dead_between_the_answer_and_the_next_page() {
    let mut form = opened();
    sent(&mut form);
    let effects = answer(&mut form, taken(false, false), NOW + 50);
    assert_eq!(effects, [Effect::Keep, Effect::Open { address: "/requests/r".into() }]);
    assert!(!form.is_ready());
    assert_eq!(form.on(Event::Submit { now: NOW + 60 }), []);
    assert_eq!((form.request(), form.may_have_arrived()), (Some("r"), false));
}

#[test]
fn a_repeat_says_that_it_is_one() {
    for (reply, address) in
        [(taken(true, false), "/requests/r?repeat=1"), (taken(false, true), "/requests/r?existing=1")]
    {
        let mut form = opened();
        sent(&mut form);
        let effects = answer(&mut form, reply, NOW);
        assert_eq!(effects.last(), Some(&Effect::Open { address: address.into() }));
    }
}

#[test]
fn lost_tries_are_repeated_under_the_same_id_for_a_minute_and_never_called_failed() {
    let mut form = opened();
    let mut turn = sent(&mut form);
    let mut now = NOW;
    let mut tries = 1;
    loop {
        let effects = answer(&mut form, Reply::Lost, now);
        match effects[..] {
            [Effect::Wait { turn: waiting, time }] => {
                assert_eq!(waiting, turn);
                now += u64::try_from(time.as_millis()).unwrap();
                let next = form.on(Event::WaitOver { turn });
                assert_eq!(next, [Effect::Send { turn: turn + 1 }]);
                turn += 1;
                tries += 1;
            }
            [Effect::Keep, Effect::Focus] => break,
            _ => panic!("{effects:?}"),
        }
    }
    assert!(tries > 5 && now - NOW <= 60_000, "{tries} tries in {} ms", now - NOW);
    assert_eq!(*form.phase(), Phase::OutcomeUnknown { said: None });
    assert_eq!(form.id(), "id-1");
    assert!(form.is_ready() && form.may_have_arrived());
    sent(&mut form);
    assert_eq!(form.id(), "id-1", "checking again asks for the same submission");
}

#[test]
fn the_time_that_the_portal_asks_for_is_honoured() {
    let mut form = opened();
    sent(&mut form);
    let later = |seconds| Reply::Later {
        detail: "busy".into(),
        after: Some(Duration::from_secs(seconds)),
        untouched: false,
    };
    let effects = answer(&mut form, later(5), NOW);
    let [Effect::Wait { time, .. }] = effects[..] else { panic!("{effects:?}") };
    assert!(time >= Duration::from_secs(5));
    form.on(Event::WaitOver { turn: form.turn });
    answer(&mut form, later(300), NOW + 6_000);
    assert_eq!(*form.phase(), Phase::OutcomeUnknown { said: Some("busy".into()) });
}

/// The portal says that it took nothing in, and when to come again.
fn not_now(seconds: u64) -> Reply {
    let after = Some(Duration::from_secs(seconds));
    Reply::Later { detail: "full".into(), after, untouched: true }
}

#[test]
fn what_the_portal_told_is_not_called_unknown_and_checking_again_sends_the_same() {
    let mut form = opened();
    sent(&mut form);
    assert_eq!(answer(&mut form, not_now(300), NOW), [Effect::Keep, Effect::Focus]);
    assert_eq!(*form.phase(), Phase::NotNow { said: "full".into() });
    assert_eq!(form.not_before(), Some(NOW + 300_000));
    assert!(form.is_ready() && !form.may_have_arrived());
    sent(&mut form);
    assert_eq!((form.id(), form.not_before()), ("id-1", None));
    // While tries follow by themselves, each may arrive before the page is gone.
    assert!(matches!(answer(&mut form, not_now(5), NOW)[..], [Effect::Wait { .. }]));
    assert!(form.may_have_arrived());
}

#[test]
fn a_try_that_may_have_arrived_stays_unknown_whatever_is_told_of_the_next() {
    for first in [Reply::Lost, Reply::Later { detail: "in use".into(), after: None, untouched: false }] {
        let mut form = opened();
        let turn = sent(&mut form);
        answer(&mut form, first, NOW);
        form.on(Event::WaitOver { turn });
        answer(&mut form, not_now(300), NOW);
        assert_eq!(*form.phase(), Phase::OutcomeUnknown { said: Some("full".into()) });
        assert_eq!(form.not_before(), Some(NOW + 300_000), "when to check is known all the same");
        assert!(form.may_have_arrived());
    }
}

#[test]
fn an_answer_to_an_earlier_try_is_not_taken_for_one_to_this() {
    let mut form = opened();
    let first = sent(&mut form);
    answer(&mut form, Reply::Lost, NOW);
    form.on(Event::WaitOver { turn: first });
    let late = Event::Answered { turn: first, reply: taken(false, false), now: NOW, random: 0 };
    assert_eq!(form.on(late), []);
    assert_eq!(form.on(Event::WaitOver { turn: first }), []);
}

#[test]
fn a_refusal_brings_the_form_back_alive() {
    let mut form = opened();
    sent(&mut form);
    let refused = problem(ProblemKind::InvalidParameters, 422);
    assert_eq!(answer(&mut form, Reply::Refused(refused.clone()), NOW), [Effect::Keep, Effect::Focus]);
    assert_eq!(*form.phase(), Phase::Refused { problem: refused, doubtful: false });
    assert!(form.is_ready() && !form.may_have_arrived());
    assert_eq!(form.id(), "id-1", "a refusal does not use up the ID");
}

#[test]
fn a_refusal_settles_a_lost_try_only_if_the_key_was_looked_up() {
    for (kind, status, doubt) in [
        (ProblemKind::NotFound, 404, true),
        (ProblemKind::NameTaken, 409, false),
        (ProblemKind::Internal, 403, true),
    ] {
        let mut form = opened();
        let turn = sent(&mut form);
        answer(&mut form, Reply::Lost, NOW);
        form.on(Event::WaitOver { turn });
        answer(&mut form, Reply::Refused(problem(kind, status)), NOW);
        assert!(matches!(*form.phase(), Phase::Refused { doubtful, .. } if doubtful == doubt), "{kind:?}");
        assert_eq!(form.may_have_arrived(), doubt);
    }
}

#[test]
fn a_used_id_is_a_choice_and_only_the_choice_makes_a_fresh_one() {
    for kind in [ProblemKind::KeyReused, ProblemKind::KeyExpired] {
        let mut form = opened();
        sent(&mut form);
        answer(&mut form, Reply::Refused(problem(kind, 422)), NOW);
        assert!(matches!(form.phase(), Phase::Asked(Question::Reused(_))));
        assert_eq!(form.id(), "id-1");
        let effects = form.on(Event::AsNew { id: "id-2".into(), now: NOW });
        assert_eq!(effects[0], Effect::TakeId);
        assert!(matches!(effects.last(), Some(Effect::Send { .. })));
        assert_eq!(form.id(), "id-2");
    }
}

#[test]
fn a_likely_duplicate_is_asked_and_the_answer_is_sent_along() {
    let mut form = opened();
    sent(&mut form);
    let asked = problem(ProblemKind::SuspectedDuplicate, 409);
    let earlier = asked.request.clone().unwrap().id.to_string();
    answer(&mut form, Reply::Refused(asked), NOW);
    let effects = form.on(Event::Anyway { reason: "two are needed".into(), now: NOW });
    assert!(matches!(effects.last(), Some(Effect::Send { .. })));
    let confirmation = Confirmation { of: earlier, reason: "two are needed".into() };
    assert_eq!(form.confirmation(), Some(&confirmation));
    assert_eq!(form.id(), "id-1");
    assert_eq!(opened().on(Event::Anyway { reason: "x".into(), now: NOW }), []);
}

#[test]
fn a_reason_that_does_not_do_leaves_the_question_as_it_was() {
    let mut form = opened();
    sent(&mut form);
    let asked = problem(ProblemKind::SuspectedDuplicate, 409);
    answer(&mut form, Reply::Refused(asked.clone()), NOW);
    form.on(Event::Anyway { reason: "\u{7}".into(), now: NOW });
    let fault = FieldError { pointer: "/confirm_duplicate/reason".into(), detail: "of one line".into() };
    let refused = Problem { errors: vec![fault.clone()], ..problem(ProblemKind::InvalidParameters, 422) };
    answer(&mut form, Reply::Refused(refused), NOW);
    let question = Problem { errors: vec![fault], ..asked };
    assert_eq!(*form.phase(), Phase::Asked(Question::Duplicate(question)));
    assert!(!form.on(Event::Anyway { reason: "two are needed".into(), now: NOW }).is_empty());
}

fn overtaken(yours: &str, current: &str) -> Problem {
    let parameters = serde_json::json!({"count": 5}).as_object().unwrap().clone();
    let versions = Versions { yours: yours.into(), current: current.into(), parameters };
    Problem { versions: Some(Box::new(versions)), ..problem(ProblemKind::PreconditionFailed, 412) }
}

#[test]
fn what_was_changed_meanwhile_is_overwritten_only_by_an_answer_to_the_question() {
    let mut form = opened();
    let turn = sent(&mut form);
    form.on(Event::Answered { turn, reply: Reply::Lost, now: NOW, random: 0 });
    form.on(Event::WaitOver { turn });
    let question = Question::Conflict(overtaken("\"a.1\"", "\"a.2\""));
    answer(&mut form, Reply::Refused(overtaken("\"a.1\"", "\"a.2\"")), NOW);
    assert_eq!(*form.phase(), Phase::Asked(question.clone()));
    assert!(!form.may_have_arrived(), "the key was looked up before the version");
    // The button itself asks the same again.
    sent(&mut form);
    answer(&mut form, Reply::Refused(overtaken("\"a.1\"", "\"a.2\"")), NOW);
    assert_eq!(*form.phase(), Phase::Asked(question));
    let effects = form.on(Event::OnTop { now: NOW });
    assert_eq!(effects[..2], [Effect::TakeVersion { etag: "\"a.2\"".into() }, Effect::TakeValues]);
    assert!(matches!(effects.last(), Some(Effect::Send { .. })));
    assert_eq!(form.id(), "id-1");
    assert_eq!(opened().on(Event::OnTop { now: NOW }), []);
}

#[test]
fn a_form_about_one_life_is_never_sent_on_to_another() {
    let mut form = opened();
    sent(&mut form);
    answer(&mut form, Reply::Refused(overtaken("\"a.1\"", "\"b.1\"")), NOW);
    assert_eq!(form.on(Event::OnTop { now: NOW }), []);
    assert!(form.is_ready());
}

#[test]
fn an_ended_session_leads_to_the_login_and_nothing_is_forgotten() {
    let mut form = opened();
    sent(&mut form);
    let refused = Reply::Refused(problem(ProblemKind::NotAuthenticated, 401));
    assert_eq!(answer(&mut form, refused, NOW), [Effect::Keep, Effect::LogIn]);
    assert!(!form.may_have_arrived());
    assert_eq!(form.id(), "id-1");
}

#[test]
fn out_of_the_back_forward_cache_the_form_is_alive_with_its_id() {
    let mut form = opened();
    sent(&mut form);
    answer(&mut form, taken(false, false), NOW);
    form.on(Event::ShownAgain);
    assert!(form.is_ready());
    assert_eq!(form.request(), Some("r"));
    sent(&mut form);
    form.on(Event::ShownAgain);
    assert_eq!(*form.phase(), Phase::OutcomeUnknown { said: None });
    assert_eq!(form.id(), "id-1");
}

#[test]
fn a_form_that_comes_back_in_the_middle_knows_that_it_was_sent() {
    let form = Machine::open("id-1".into(), true, None);
    assert_eq!(*form.phase(), Phase::OutcomeUnknown { said: None });
    assert!(form.may_have_arrived());
    let done = Machine::open("id-1".into(), false, Some("r".into()));
    assert_eq!(*done.phase(), Phase::Ready);
}
