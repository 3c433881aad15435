//! What a form is about: a new resource, or a change, an action or the end of one that is there. Where the form stands,
//! what it asks for, and what is sent of it, the same for the form with script and for the plain post.

use super::outgoing::{self, Values, parameter_field};
use crate::address;
use domain::{
    form,
    hidden::is_mark,
    merge,
    name::Name,
    problem::{FieldError, Problem, ProblemKind},
    view::{ActionView, Object, OfferingView, ResourceView},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The hidden field with the `ETag` that the resource had when the form was opened.
pub const ETAG: &str = "etag";
/// The hidden field with the parameters that the resource had when the form was opened, as JSON.
pub const BASE: &str = "base";
/// The field into which the name is typed before something is deleted.
pub const CONFIRM: &str = "confirm";

/// What a form is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The offering.
    pub offering: OfferingView,
    /// What the form does.
    pub deed: Deed,
    /// The resource to which it does that; none where it makes one.
    pub on: Option<Standing>,
}

/// What a form does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Deed {
    /// Requests a new resource.
    Create,
    /// Changes a resource's parameters.
    Update,
    /// Deletes a resource.
    Delete,
    /// Does with a resource what its offering defines.
    Act(ActionView),
}

/// A resource as it was when the form was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its team.
    pub team: Name,
    /// Its type.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Its `ETag`.
    pub etag: String,
    /// What it was meant to be.
    pub parameters: Object,
}

impl From<&ResourceView> for Standing {
    fn from(resource: &ResourceView) -> Self {
        Self {
            team: resource.team.clone(),
            kind: resource.resource_type.clone(),
            name: resource.name.clone(),
            etag: resource.etag().to_string(),
            parameters: resource.parameters.clone(),
        }
    }
}

impl Standing {
    /// What it is, for people.
    #[must_use]
    pub fn what(&self) -> String {
        format!("{} {} of team {}", self.kind, self.name, self.team)
    }

    /// The address of its page; with `/api/v1` before it that of the resource in the API.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/teams/{}/resources/{}/{}", self.team, self.kind, self.name)
    }
}

/// One try of a form, as it is sent to the API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The address.
    pub address: String,
    /// `If-Match`.
    pub if_match: Option<String>,
    /// The body.
    pub body: Option<String>,
}

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Makes something, or does an action.
    #[default]
    Post,
    /// Changes parameters.
    Patch,
    /// Deletes.
    Delete,
}

impl Subject {
    /// A form that requests an offering.
    #[must_use]
    pub fn create(offering: OfferingView) -> Self {
        Self { offering, deed: Deed::Create, on: None }
    }

    /// A form about a resource that is there; its secrets do not travel with it.
    #[must_use]
    pub fn on(offering: OfferingView, on: Standing, deed: Deed) -> Self {
        let mut subject = Self { offering, deed, on: None };
        let parameters = subject.open(&on.parameters);
        subject.on = Some(Standing { parameters, ..on });
        subject
    }

    /// These parameters without the secret ones; of a secret at most the mark that stands for it, by which one can tell
    /// whether it was changed.
    #[must_use]
    pub fn open(&self, parameters: &Object) -> Object {
        let mark = |name: &str, value: &Value| {
            outgoing::is_write_only(&self.offering.parameters, name) && is_mark(value)
        };
        let open = parameters.iter().filter(|(name, value)| !self.is_secret(name) || mark(name, value));
        open.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The parameters with which the form was opened, without secrets and what stands for them.
    fn before(&self, values: &Values) -> Object {
        base(values).into_iter().filter(|(name, _)| !self.is_secret(name)).collect()
    }

    /// The title of one of the form's own parameters.
    #[must_use]
    pub fn title(&self, parameter: &str) -> String {
        title(self.schema(), parameter)
    }

    /// The title of one of the resource's parameters.
    #[must_use]
    pub fn title_on(&self, parameter: &str) -> String {
        title(&self.offering.parameters, parameter)
    }

    /// The schema of the form's inputs.
    #[must_use]
    pub fn schema(&self) -> &Value {
        match &self.deed {
            Deed::Create | Deed::Update => &self.offering.parameters,
            Deed::Act(action) => &action.parameters,
            Deed::Delete => &Value::Null,
        }
    }

    /// Where the form is posted to without script.
    #[must_use]
    pub fn target(&self) -> String {
        address::sent(&self.path())
    }

    /// The form's address.
    #[must_use]
    pub fn path(&self) -> String {
        match (&self.on, &self.deed) {
            (Some(on), Deed::Act(action)) => format!("{}/actions/{}", on.path(), action.id),
            (Some(on), Deed::Delete) => format!("{}/delete", on.path()),
            (Some(on), _) => format!("{}/change", on.path()),
            (None, _) => format!("/offerings/{}/new", self.offering.id),
        }
    }

    /// What the inputs hold when the form is opened.
    #[must_use]
    pub fn opened_with(&self) -> Values {
        let mut values = Values::new();
        let Some(on) = &self.on else { return values };
        values.insert(ETAG.to_owned(), on.etag.clone());
        let shown = self.open(&on.parameters);
        values.insert(BASE.to_owned(), Value::Object(shown.clone()).to_string());
        if self.deed == Deed::Update {
            let open = shown.into_iter().filter(|(name, _)| !self.is_secret(name));
            let ticked = open.filter(|(_, value)| *value != Value::Bool(false));
            values.extend(ticked.map(|(name, value)| (parameter_field(&name), form::shown(&value))));
        }
        values
    }

    /// Whether this is a secret among the offering's parameters, or the action's: never kept, never shown again.
    #[must_use]
    pub fn is_secret(&self, parameter: &str) -> bool {
        let is_secret = |schema| outgoing::is_secret(schema, parameter);
        is_secret(&self.offering.parameters) || is_secret(self.schema())
    }

    /// The parameters that the inputs mean, without those that do not apply.
    #[must_use]
    pub fn parameters(&self, values: &Values) -> Object {
        let sent = |parameter: &str| values.get(&parameter_field(parameter)).cloned();
        match self.deed {
            Deed::Update => {
                form::edited(self.schema(), &self.before(values), sent, |parameter| self.is_secret(parameter))
            }
            _ => form::typed(self.schema(), sent),
        }
    }

    /// The body that is sent; nothing where there is none. Refused here is only what cannot be written into a body, or
    /// asks for nothing; the service checks the rest.
    pub fn body(&self, values: &Values) -> Result<Option<Object>, Problem> {
        match &self.deed {
            Deed::Create => outgoing::body(&self.offering, values).map(Some).map_err(unfit),
            Deed::Act(_) => Ok(Some(self.parameters(values))),
            Deed::Update => {
                let patch = merge::between(&self.before(values), &self.parameters(values));
                if patch.is_empty() {
                    return Err(Problem { title: "Nothing is changed".to_owned(), ..unfit(Vec::new()) });
                }
                Ok(Some(patch))
            }
            Deed::Delete => {
                let name = self.on.as_ref().map(|on| on.name.as_str()).unwrap_or_default();
                let typed = values.get(CONFIRM).map(|text| text.trim()).unwrap_or_default();
                if typed == name {
                    return Ok(None);
                }
                let detail = format!("type {name}, the resource's name, to confirm that this one is meant");
                Err(unfit(vec![FieldError { pointer: format!("/{CONFIRM}"), detail }]))
            }
        }
    }

    /// One try of the form; `confirmed` answers the question whether it is a duplicate.
    pub fn call(&self, values: &Values, confirmed: Option<Value>) -> Result<Call, Problem> {
        let mut body = self.body(values)?;
        if let (Some(body), Some(confirmed)) = (&mut body, confirmed) {
            body.insert("confirm_duplicate".to_owned(), confirmed);
        }
        let body = body.map(|body| Value::Object(body).to_string());
        let Some(on) = &self.on else {
            let team = values.get("team").map(String::as_str).unwrap_or_default();
            let address = format!("/api/v1/teams/{}/requests", crate::address::encode(team));
            return Ok(Call { address, body, ..Call::default() });
        };
        let address = format!("/api/v1{}", on.path());
        let (method, address) = match &self.deed {
            Deed::Act(action) => (Method::Post, format!("{address}/actions/{}", action.id)),
            Deed::Delete => (Method::Delete, address),
            _ => (Method::Patch, address),
        };
        Ok(Call { method, address, if_match: values.get(ETAG).cloned(), body })
    }

    /// The field that a problem's pointer is about, if it is one of the form's. The body of a create holds parameters
    /// among other things; other bodies are the parameters.
    #[must_use]
    pub fn field_of(&self, pointer: &str) -> Option<String> {
        let own = pointer.strip_prefix('/').filter(|field| *field == CONFIRM && self.deed == Deed::Delete);
        match (&self.deed, own) {
            (Deed::Create, _) => outgoing::field_of(pointer),
            (_, Some(field)) => Some(field.to_owned()),
            (_, None) if pointer.starts_with("/parameters/") => outgoing::field_of(pointer),
            (_, None) => outgoing::field_of(&format!("/parameters{pointer}")),
        }
    }
}

fn title(schema: &Value, parameter: &str) -> String {
    let property = schema.get("properties").and_then(|properties| properties.get(parameter));
    let title = property.and_then(|property| property.get("title")).and_then(Value::as_str);
    title.unwrap_or(parameter).to_owned()
}

/// The parameters with which the form was opened; in the place of secrets the marks that stand for them.
#[must_use]
pub fn base(values: &Values) -> Object {
    let kept = values.get(BASE).and_then(|text| domain::json::read(text.as_bytes()).ok());
    match kept {
        Some(Value::Object(kept)) => kept,
        _ => Object::new(),
    }
}

fn unfit(errors: Vec<FieldError>) -> Problem {
    let kind = ProblemKind::InvalidParameters;
    Problem {
        kind: format!("/problems/{}", kind.slug()),
        title: kind.title().to_owned(),
        status: 422,
        detail: "Nothing was sent.".to_owned(),
        errors,
        differs: Vec::new(),
        request: None,
        versions: None,
        earlier: None,
        quota: None,
    }
}

/// The answer to the question whether it is a duplicate, as a body holds it.
#[must_use]
pub fn confirmation(of: &str, reason: &str) -> Value {
    json!({ "of": of, "reason": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering() -> OfferingView {
        serde_json::from_value(json!({
            "id": "vm", "title": "VM", "description": "", "category": "c", "version": "1", "resource_type": "vm",
            "parameters": {"type": "object", "properties": {
                "count": {"type": "integer"}, "on": {"type": "boolean"}, "key": {"type": "string", "writeOnly": true},
                "zone": {"type": "string", "x-immutable": true}, "deep": {"type": "object"}
            }},
            "updatable": true,
            "actions": [{"id": "grow", "title": "Grow", "description": "", "changes": {},
                "parameters": {"type": "object", "properties": {"by": {"type": "integer"}}}}],
            "guard": {"max_tries": 3, "timeout_seconds": 60}, "available": true
        }))
        .unwrap()
    }

    fn subject(deed: Deed) -> Subject {
        let Value::Object(parameters) =
            json!({"count": 2, "on": true, "key": "hush", "zone": "a", "deep": {"a": 1, "b": 2}})
        else {
            panic!("an object")
        };
        let name = |text| Name::parse(text).unwrap();
        let (team, kind) = (name("web"), name("vm"));
        let on = Standing { team, kind, name: name("one"), etag: "\"x.3\"".into(), parameters };
        Subject::on(offering(), on, deed)
    }

    fn with(subject: &Subject, changed: &[(&str, &str)]) -> Values {
        let mut values = subject.opened_with();
        values.extend(changed.iter().map(|(field, text)| ((*field).to_owned(), (*text).to_owned())));
        values
    }

    #[test]
    fn an_update_sends_what_was_touched_with_the_version_it_was_thought_out_by() {
        let subject = subject(Deed::Update);
        let page = serde_json::to_string(&(&subject, subject.opened_with())).unwrap();
        assert!(!page.contains("hush"), "a secret is not in the page");
        let values = with(&subject, &[("p.count", "3"), ("p.deep", "{\"a\": 1}"), ("p.zone", "b")]);
        let call = subject.call(&values, None).unwrap();
        assert_eq!(
            (call.method, call.address.as_str()),
            (Method::Patch, "/api/v1/teams/web/resources/vm/one")
        );
        assert_eq!(call.if_match.as_deref(), Some("\"x.3\""));
        let body: Value = serde_json::from_str(&call.body.unwrap()).unwrap();
        assert_eq!(body, json!({"count": 3, "deep": {"b": null}}));
        let mut unticked = subject.opened_with();
        unticked.remove("p.on");
        assert_eq!(json!(subject.body(&unticked).unwrap()), json!({"on": false}));
    }

    #[test]
    fn what_stands_for_a_secret_is_known_to_the_form_and_never_sent() {
        let mark = domain::hidden::mark(&[7; 32]);
        let mut on = subject(Deed::Update).on.unwrap();
        on.parameters.insert("key".into(), json!(mark));
        let subject = Subject::on(offering(), on, Deed::Update);
        let values = subject.opened_with();
        assert_eq!(base(&values)["key"], json!(mark));
        assert!(!values.contains_key("p.key"));
        assert_eq!(json!(subject.body(&with(&subject, &[("p.count", "3")])).unwrap()), json!({"count": 3}));
        assert_eq!(json!(subject.body(&with(&subject, &[("p.key", "new")])).unwrap()), json!({"key": "new"}));
    }

    #[test]
    fn an_update_that_changes_nothing_is_not_sent() {
        let subject = subject(Deed::Update);
        let problem = subject.body(&subject.opened_with()).unwrap_err();
        assert_eq!(problem.title, "Nothing is changed");
    }

    #[test]
    fn a_form_sent_again_after_others_changed_the_resource_sends_the_same() {
        let mut subject = subject(Deed::Update);
        let values = with(&subject, &[("p.count", "3")]);
        let first = subject.call(&values, None).unwrap();
        subject.on.as_mut().unwrap().parameters.insert("count".into(), json!(3));
        subject.on.as_mut().unwrap().etag = "\"x.4\"".into();
        assert_eq!(subject.call(&values, None).unwrap(), first);
    }

    #[test]
    fn a_delete_needs_the_name_typed_and_has_no_body() {
        let subject = subject(Deed::Delete);
        for wrong in ["", "on", "ONE", "two"] {
            let problem = subject.body(&with(&subject, &[(CONFIRM, wrong)])).unwrap_err();
            assert_eq!(subject.field_of(&problem.errors[0].pointer).as_deref(), Some(CONFIRM), "{wrong}");
        }
        let call = subject.call(&with(&subject, &[(CONFIRM, " one ")]), None).unwrap();
        assert_eq!((call.method, call.body), (Method::Delete, None));
        assert_eq!(call.if_match.as_deref(), Some("\"x.3\""));
    }

    #[test]
    fn an_action_sends_its_own_parameters() {
        let subject = subject(Deed::Act(offering().actions[0].clone()));
        let call = subject.call(&with(&subject, &[("p.by", "2")]), None).unwrap();
        assert_eq!((call.method, call.body.as_deref()), (Method::Post, Some("{\"by\":2}")));
        assert_eq!(call.address, "/api/v1/teams/web/resources/vm/one/actions/grow");
        assert_eq!(subject.path(), "/teams/web/resources/vm/one/actions/grow");
        assert_eq!(subject.target(), "/teams/web/resources/vm/one/actions/grow?send");
        assert_eq!(subject.field_of("/by").as_deref(), Some("p.by"));
    }
}
