//! How the guarded form looks.

use super::{
    driver::{Driver, Opened},
    fields::{Around, Misfits, parameter},
    machine::{Machine, Phase},
    notes::{TYPE_AGAIN, lost, note, plain_answers, said},
    parts::{Confirm, Extras, Fixed, Whose},
    subject::{BASE, CONFIRM, Deed, ETAG, Subject},
};
use crate::{components::told::Why, rpc::form::Opening};
use domain::{
    form::{Field, shown},
    problem::{Problem, ProblemKind},
};
use leptos::prelude::*;

/// The guarded form: requests an offering, or changes, deletes or acts on a resource.
#[component]
pub fn RequestForm(
    /// The opened form.
    opening: Opening,
    /// The team chosen by the address.
    #[prop(optional_no_strip)]
    team: Option<String>,
) -> impl IntoView {
    let Opening { subject, teams, limits, user, fresh_id, state } = opening;
    if teams.is_empty() {
        return view! { <Looking subject problem=state.problem/> }.into_any();
    }
    let fresh = state.values.is_empty();
    let brought_back = state.problem.is_some() || !fresh;
    // Without script the page is new: reading goes on where it says why.
    let says_why = state.problem.is_some() || !state.lost.is_empty();
    let mut machine = Machine::open(state.request_id.clone(), false, None);
    if let Some(problem) = state.problem {
        machine = machine.refused(problem);
    }
    let values = if fresh { subject.opened_with() } else { state.values };
    let opened = Opened { subject: subject.clone(), user: user.clone(), fresh_id, brought_back };
    let driver = Driver::new(opened, machine, values.clone(), state.lost);
    let scripted = RwSignal::new(false);
    Effect::new(move |_| {
        scripted.set(true);
        driver.take_over();
    });

    let machine = driver.machine;
    let phase = Memo::new(move |_| machine.read().phase().clone());
    let misfits = Signal::derive(move || with_lost(phase.with(|phase| misfits(phase, driver)), driver));
    let defaults = subject.deed != Deed::Update;
    let around = Around { values: values.clone(), misfits, fresh: fresh && defaults, defaults };
    let fields = domain::form::fields(subject.schema());
    let inputs = fields.iter().filter(|field| subject.on.is_none() || !field.immutable).map(|field| {
        let secret = subject.is_secret(&field.name);
        let hidden = hidden(field, &fields, driver, scripted);
        parameter(field, &around, secret, condition(field, &fields), hidden)
    });
    let inputs = inputs.collect_view();
    let value = |field: &str| values.get(field).cloned().unwrap_or_default();
    let chosen = values.get("team").cloned().or(team);
    let creates = subject.on.is_none();
    let before = match (&subject.deed, &subject.on) {
        (Deed::Create, _) => {
            view! { <Whose teams=teams limits=limits chosen=chosen name=value("name") misfits=misfits/> }
                .into_any()
        }
        (Deed::Update, _) => view! { <Fixed subject=subject.clone()/> }.into_any(),
        (Deed::Delete, Some(on)) => {
            view! { <Confirm name=on.name.to_string() typed=value(CONFIRM) misfits=misfits/> }.into_any()
        }
        _ => ().into_any(),
    };
    let standing = subject.on.is_some().then(|| {
        view! {
            <input type="hidden" name=ETAG value=value(ETAG)/>
            <input type="hidden" name=BASE value=value(BASE)/>
        }
    });
    let label = label(&subject);
    let target = subject.target();
    let deletes = subject.deed == Deed::Delete;

    view! {
        <form
            id="request-form" class="stack" method="post" action=target
            node_ref=driver.form data-scripted=move || scripted.get().then_some("true") aria-busy=move || (!machine.read().is_ready()).then_some("true")
            on:input=move |_| driver.typed() on:change=move |_| driver.typed()
            on:submit=move |event| {
                event.prevent_default();
                driver.submit();
            }
        >
            <input
                type="hidden" id="request_id" name="request_id" value=state.request_id
                data-user=user data-fixed=brought_back.then_some("true")
            />
            <input type="hidden" name="sealed" value=state.sealed/>
            {standing}
            {state.notice.map(|notice| view! { <p class="note">{notice}</p> })}
            <div id="form-summary" tabindex="-1" autofocus=says_why node_ref=driver.summary>
                {move || phase.with(|phase| note(phase, driver, scripted))}
                {lost(driver)}
            </div>
            {before}
            {inputs}
            {creates.then(|| view! { <Extras values=values misfits=misfits/> })}
            <div class="actions">
                <button
                    type="submit" class="primary" class:danger=deletes disabled=move || !machine.read().is_ready()
                >
                    {move || phase.with(|phase| button(phase, &label))}
                </button>
                {move || phase.with(|phase| (!scripted.get()).then(|| plain_answers(phase, driver)))}
                <p role="status" class="status">{move || status(&machine.read())}</p>
            </div>
            <p class="quiet">
                "Send it as often as you like: this form carries one request ID, so it makes one request at most."
            </p>
        </form>
    }
    .into_any()
}

/// What stands in the place of the form for who may only look.
#[component]
fn Looking(subject: Subject, problem: Option<Problem>) -> impl IntoView {
    let what = match &subject.on {
        None => "You belong to no team in which you may request this: who only looks may not. Ask an owner of your team, or \
                 an administrator."
            .to_owned(),
        Some(on) => {
            format!("You may look at what team {} has, and not change it. Members of the team may.", on.team)
        }
    };
    view! {
        {problem.map(|problem| view! { <Why problem/> })}
        <p class="note" id="only-looking">{what}</p>
    }
}

fn hidden(field: &Field, fields: &[Field], driver: Driver, scripted: RwSignal<bool>) -> Signal<bool> {
    let Some((other, wanted)) = field.visible_when.clone() else {
        return Signal::stored(false);
    };
    let default = fields.iter().find(|field| field.name == other).and_then(|field| field.default.clone());
    let applies = Memo::new(move |_| {
        driver.values.with(|values| {
            let parameters = driver.opened.with_value(|opened| opened.subject.parameters(values));
            parameters.get(&other).or(default.as_ref()) == Some(&wanted)
        })
    });
    // Without script every field is shown, with the condition under which it is used.
    Signal::derive(move || scripted.get() && !applies.get())
}

fn condition(field: &Field, fields: &[Field]) -> Option<String> {
    let (other, value) = field.visible_when.as_ref()?;
    let title =
        fields.iter().find(|field| field.name == *other).map_or(other.as_str(), |field| field.title.as_str());
    Some(match value {
        serde_json::Value::Bool(true) => format!("Only used with “{title}” ticked."),
        serde_json::Value::Bool(false) => format!("Only used with “{title}” not ticked."),
        other => format!("Only used while “{title}” is {}.", shown(other)),
    })
}

fn misfits(phase: &Phase, driver: Driver) -> Misfits {
    let Phase::Refused { problem, .. } = phase else {
        return Misfits::new();
    };
    let mut misfits = Misfits::new();
    for error in &problem.errors {
        if let Some(field) = driver.opened.with_value(|opened| opened.subject.field_of(&error.pointer)) {
            let field_named = field.clone();
            let message: &mut String = misfits.entry(field).or_default();
            if !message.is_empty() {
                message.push_str("; ");
            }
            message.push_str(&said(&field_named, error, driver));
        }
    }
    let about_the_name = [ProblemKind::NameTaken, ProblemKind::DeletionInProgress];
    let creates = driver.opened.with_value(|opened| opened.subject.on.is_none());
    if creates && about_the_name.iter().any(|kind| kind.slug() == problem.slug()) {
        misfits.entry("name".to_owned()).or_insert_with(|| format!("{}.", problem.title));
    }
    misfits
}

/// The same with what is to be typed again.
fn with_lost(mut misfits: Misfits, driver: Driver) -> Misfits {
    for field in driver.lost.get() {
        let message: &mut String = misfits.entry(field).or_default();
        if !message.is_empty() {
            message.push_str(". ");
        }
        message.push_str(TYPE_AGAIN);
    }
    misfits
}

/// What the main button says.
fn label(subject: &Subject) -> String {
    match &subject.deed {
        Deed::Create => "Request".to_owned(),
        Deed::Update => "Change".to_owned(),
        Deed::Delete => "Delete".to_owned(),
        Deed::Act(action) => action.title.clone(),
    }
}

fn button(phase: &Phase, label: &str) -> String {
    match phase {
        Phase::Sending => "Sending…".to_owned(),
        Phase::Leaving => "Opening…".to_owned(),
        Phase::OutcomeUnknown { .. } | Phase::NotNow { .. } => "Check again".to_owned(),
        _ => label.to_owned(),
    }
}

fn status(machine: &Machine) -> &'static str {
    match machine.phase() {
        Phase::Sending if machine.is_trying_again() => {
            "No result yet. Trying again with the same request ID; nothing is made twice."
        }
        Phase::Sending => "Sending the request.",
        Phase::Leaving => "Answered. Opening the page.",
        Phase::OutcomeUnknown { .. } => "The outcome is not known yet.",
        Phase::NotNow { .. } => "The portal cannot take this in now. Nothing was requested.",
        Phase::Refused { .. } => "Not accepted. The reasons are listed above the form.",
        Phase::Asked(_) => "A choice is needed. It stands above the form.",
        Phase::Ready => "",
    }
}
