//! The filter of a list of requests: its conditions, each with a way to take it off, and the form that makes another. All
//! of it are links and a form that asks, so that the address holds the filter and Back leads to the one before.

use super::moment::reader_zone;
use crate::filter::{Condition, Filter, Misread, Span, equal};
use domain::{
    correlation::CORRELATION_LABEL,
    search::{self, Field, Operator},
    state::RequestState,
    submission::Channel,
};
use leptos::prelude::*;

/// A field of the form: its parameter in the address, its label, a hint, and its type.
struct Input {
    name: String,
    label: &'static str,
    hint: &'static str,
    kind: &'static str,
}

fn input(name: String, label: &'static str, hint: &'static str) -> Input {
    Input { name, label, hint, kind: "text" }
}

/// The fields whose values are texts.
fn inputs() -> Vec<Input> {
    vec![
        input(equal(Field::Offering), "Offering", ""),
        input(Field::Name.compared(Operator::Contains), "Name holds", ""),
        input(equal(Field::Type), "Type", ""),
        input(equal(Field::Action), "Action", "create, update, delete or another"),
        input(equal(Field::RequestedBy), "Requested by", ""),
        input(search::label(CORRELATION_LABEL), "Correlation ID", ""),
        input(equal(Field::ParentId), "Descends from", "the ID of a request"),
        input("label".into(), "Label", "key:value"),
        input("parameter".into(), "Parameter", "name:value"),
    ]
}

/// The conditions of a filter as a list, each with a link that takes it off.
#[component]
pub fn Conditions(
    /// The filter.
    filter: Filter,
    /// The page's path.
    path: String,
) -> impl IntoView {
    let conditions = filter.conditions();
    if conditions.is_empty() {
        return ().into_any();
    }
    let all = path.clone();
    let rows = conditions.into_iter().map(|Condition { what, value, without }| {
        let text = format!("{what} {value}");
        let href = if without.is_empty() { path.clone() } else { format!("{path}?{without}") };
        let label = format!("Take off: {text}");
        view! {
            <li class="chip">
                <span>{what} " " <strong>{value}</strong></span>
                <a href=href aria-label=label title="Take off">"×"</a>
            </li>
        }
    });
    let rows = rows.collect_view();
    view! {
        <ul class="chips" id="conditions" aria-label="Conditions">
            {rows}
            <li><a href=all>"Show all"</a></li>
        </ul>
    }
    .into_any()
}

/// A box for each state, ticked where the filter has it.
fn states(filter: &Filter) -> impl IntoView + use<> {
    let name = Field::State.compared(Operator::In);
    let of_state = filter.search.filters().filter(|one| one.field == Field::State);
    let ticked: Vec<RequestState> = of_state.flat_map(|one| one.states()).collect();
    let boxes = RequestState::ALL.map(|state| {
        let checked = ticked.contains(&state);
        view! {
            <label class="tick">
                <input type="checkbox" name=name.clone() value=state.as_str() checked=checked/>
                {super::state::word(state)}
            </label>
        }
    });
    boxes.into_iter().collect_view()
}

/// The doors by which a request may have come.
fn channels(chosen: &str) -> impl IntoView + use<> {
    let doors =
        ["form", "api", "hook", "composite"].into_iter().filter_map(|word| word.parse::<Channel>().ok());
    let options = doors.map(|one| {
        let selected = chosen == one.as_str();
        view! { <option value=one.as_str() selected=selected>{super::state::door(one)}</option> }
    });
    options.collect_view()
}

/// A field of the form with what is typed in it, and the rule that this broke.
fn text(place: usize, field: Input, value: String, rule: Option<String>) -> impl IntoView {
    let id = format!("filter-{place}");
    let error = format!("{id}-error");
    let list = (field.label == "Offering").then_some("offerings");
    let hint = (!field.hint.is_empty()).then(|| view! { <span class="quiet">" (" {field.hint} ")"</span> });
    let wrong = rule.as_ref().map(|_| "true");
    let described = rule.as_ref().map(|_| error.clone());
    view! {
        <div class="field">
            <label for=id.clone()>{field.label} {hint}</label>
            {rule.map(|rule| view! { <p class="field-error" id=error>{rule}</p> })}
            <input
                type=field.kind id=id name=field.name value=value list=list autocomplete="off"
                aria-invalid=wrong aria-describedby=described
            />
        </div>
    }
}

/// The form that asks for another filter. What it has no field for is kept as it is.
#[component]
pub fn FilterForm(
    /// The filter as it is.
    filter: Filter,
    /// What was typed into it and is not understood.
    typed: Vec<Misread>,
    /// The page's path.
    path: String,
    /// The offerings that there are.
    offerings: Vec<String>,
    /// Whether to open all of it.
    open: bool,
) -> impl IntoView {
    let pairs = filter.pairs();
    let misread = |name: &str| typed.iter().find(|one| one.name == name);
    let value = |name: &str| {
        let known = || pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        misread(name).map(|one| one.value.clone()).or_else(known).unwrap_or_default()
    };
    let fields = inputs();
    let channel = equal(Field::Channel);
    let mut own: Vec<&str> = vec!["q", "time", "from", "to", "ended_from", "ended_to", "zone", &channel];
    own.extend(fields.iter().map(|field| field.name.as_str()));
    let of_state = |name: &str| name.starts_with("filters[state]");
    let kept = pairs.iter().filter(|(name, _)| !own.contains(&name.as_str()) && !of_state(name));
    let kept = kept
        .map(|(name, value)| view! { <input type="hidden" name=name.clone() value=value.clone()/> })
        .collect_view();
    let boxes = states(&filter);
    let channels = channels(&value(&channel));
    let times = Span::ALL.map(|span| {
        let selected = filter.span == Some(span);
        view! { <option value=span.as_str() selected=selected>{span.words()}</option> }
    });
    let texts = fields.into_iter().enumerate().map(|(place, field)| {
        let rule = misread(&field.name).map(|one| one.rule.clone());
        let value = value(&field.name);
        text(place, field, value, rule)
    });
    let texts = texts.collect_view();
    let offerings = offerings.into_iter().map(|id| view! { <option value=id></option> }).collect_view();
    let day = |name: &'static str, label: &'static str, value: Option<String>| {
        let id = format!("filter-{name}");
        view! {
            <div class="field">
                <label for=id.clone()>{label}</label>
                <input type="date" id=id name=name value=value.unwrap_or_default()/>
            </div>
        }
    };
    let reader = reader_zone();
    let given = filter.zone.clone();
    let zone = given.clone();
    view! {
        <form class="filters" method="get" action=path role="search" autocomplete="off">
            {kept}
            <div class="inline">
                <div class="field wide-field">
                    <label for="filter-q">"Search"</label>
                    <input type="search" id="filter-q" name="q" value=value("q")
                        placeholder="a name, an ID, a key, a label, a value, a person"/>
                </div>
                <div class="field">
                    <label for="filter-time">"Requested"</label>
                    <select id="filter-time" name="time">
                        <option value="">"at any time"</option>
                        {times.into_iter().collect_view()}
                    </select>
                </div>
                <button type="submit" class="primary">"Search"</button>
            </div>
            <details open=open>
                <summary>"More conditions"</summary>
                <div>
                    <fieldset class="ticks">
                        <legend>"State"</legend>
                        {boxes}
                    </fieldset>
                    <div class="inline">
                        {texts}
                        <div class="field">
                            <label for="filter-channel">"Came by"</label>
                            <select id="filter-channel" name=channel>
                                <option value="">"any door"</option>
                                {channels}
                            </select>
                        </div>
                    </div>
                    <div class="inline">
                        {day("from", "Requested from", filter.from.clone())}
                        {day("to", "Requested until, with that day", filter.to.clone())}
                        {day("ended_from", "Ended from", filter.ended_from.clone())}
                        {day("ended_to", "Ended until, with that day", filter.ended_to.clone())}
                        <div class="field">
                            <label for="filter-zone">"Days are those of"</label>
                            <input type="text" id="filter-zone" name="zone" value=given.unwrap_or_default()
                                prop:value=move || zone.clone().or_else(|| reader.get()).unwrap_or_default()
                                placeholder="UTC"/>
                        </div>
                        <button type="submit">"Search"</button>
                    </div>
                    <datalist id="offerings">{offerings}</datalist>
                </div>
            </details>
        </form>
    }
}
