//! One offering: what `offering.yaml` says, read and checked as a whole.

use super::{
    Action, ApprovalPolicy, Composite, ExpiryRule, Mistake, OFFERING_FILE, ParameterSchema, action, approval,
    composite, expiry,
    outside::{self, Does},
    schema_check,
    sheet::{Members, Sheet},
    yaml::{self, Kind, Node, Place},
};
use crate::provisioner::{
    Provisioner,
    exec::{Exec, PARAMETER, Site, variable},
    fake::Fake,
    http::{self, Http},
    kestra::{self, Kestra},
    steps::Steps,
};
use domain::{
    approval::ApprovalNeeded,
    backoff::Backoff,
    name::Name,
    view::{OfferingGuardView, OfferingView},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The largest `offering.yaml`, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// The longest time one run may be given.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The longest window in which the same intention counts as a likely duplicate.
const MAX_WINDOW: Duration = Duration::from_hours(30 * 24);

const DEFAULT_TRIES: u32 = 5;
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
const DEFAULT_RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };

/// An entry of the catalog.
#[derive(Debug, Clone)]
pub struct Offering {
    /// Its ID: the name of its folder.
    pub id: Name,
    /// Its version, in its author's words.
    pub version: String,
    /// A hash of the whole `offering.yaml` (BLAKE3, hexadecimal), which changes with it whatever the version says.
    pub digest: String,
    /// Its title.
    pub title: String,
    /// What one gets.
    pub description: String,
    /// The shelf it stands on.
    pub category: String,
    /// The type of the resources it makes.
    pub resource_type: Name,
    /// The schema of its parameters.
    pub schema: Arc<ParameterSchema>,
    /// Whether its program can change what it made, as well as make and remove it.
    pub(crate) updates: bool,
    /// What else its program does with a thing that it made, by ID.
    pub actions: BTreeMap<Name, Action>,
    /// How often a run is tried before it counts as failed.
    pub max_tries: u32,
    /// How long one run of its program may take.
    pub timeout: Duration,
    /// How one waits between tries.
    pub retry: Backoff,
    /// Within which time the same intention under another key is a likely duplicate.
    pub duplicate_window: Option<Duration>,
    /// What one resource takes up of a team's quota.
    pub quota_cost: u32,
    /// What of it needs somebody's approval, where anything does.
    pub approval: Option<ApprovalPolicy>,
    /// Outputs that are kept encrypted and shown only on demand.
    pub secret_outputs: BTreeSet<String>,
    /// All other outputs, where the offering says which there are.
    pub(crate) public_outputs: Option<BTreeSet<String>>,
    /// When its resources end, where it says so.
    pub expiry: Option<ExpiryRule>,
    /// What it is made of, where that is other offerings.
    pub(crate) composite: Option<Arc<Composite>>,
    /// What makes its resources.
    pub provisioner: Arc<dyn Provisioner>,
}

impl Offering {
    /// Whether the parameters of its resources can be changed.
    #[must_use]
    pub fn updatable(&self) -> bool {
        self.updates
    }

    /// Whose approval a request with this action needs.
    #[must_use]
    pub fn approval_of(&self, action: &str) -> Option<ApprovalNeeded> {
        self.approval.as_ref().and_then(|policy| policy.of(action))
    }

    /// Whether any of its parameters, or of its actions', is a secret.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        let actions = self.actions.values().map(|action| &action.schema);
        std::iter::once(&self.schema).chain(actions).any(|schema| !schema.secrets().is_empty())
    }

    /// The offering as it travels.
    #[must_use]
    pub fn view(&self) -> OfferingView {
        OfferingView {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            category: self.category.clone(),
            version: self.version.clone(),
            resource_type: self.resource_type.clone(),
            parameters: self.schema.value().clone(),
            updatable: self.updates,
            actions: self.actions.iter().map(|(id, action)| action.view(id)).collect(),
            made_of: self.composite.iter().flat_map(|composite| composite.parts()).collect(),
            approval: self.approval.as_ref().map(ApprovalPolicy::view),
            guard: OfferingGuardView {
                max_tries: self.max_tries,
                timeout_seconds: self.timeout.as_secs(),
                duplicate_window_seconds: self.duplicate_window.map(|window| window.as_secs()),
            },
            available: true,
            problem: None,
        }
    }
}

/// Reads one folder; answers with every mistake that can be found in one go.
pub(super) fn load(id: &str, folder: &Path, site: &Site) -> Result<Offering, Vec<Mistake>> {
    let file = folder.join(OFFERING_FILE);
    let mut sheet = Sheet::of(file.display().to_string());
    let text = match read_file(&file) {
        Ok(text) => text,
        Err(why) => {
            sheet.note(Place::START, why);
            return Err(sheet.mistakes);
        }
    };
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let root = match yaml::read(&text) {
        Ok(root) => root,
        Err((place, why)) => {
            sheet.note(place, why);
            return Err(sheet.mistakes);
        }
    };
    let offering = read(&mut sheet, id, digest, &root, folder, site);
    match offering {
        Some(offering) if sheet.mistakes.is_empty() => Ok(offering),
        _ => {
            sheet.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            Err(sheet.mistakes)
        }
    }
}

fn read_file(file: &Path) -> Result<String, String> {
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("every offering's folder needs a file {OFFERING_FILE}"),
        io::ErrorKind::InvalidData => "the file is not UTF-8 text".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    };
    if fs::metadata(file).map_err(explain)?.len() > MAX_FILE {
        return Err(format!("the file has more than {MAX_FILE} bytes"));
    }
    fs::read_to_string(file).map_err(explain)
}

const FIELDS: &[&str] = &[
    "title",
    "description",
    "category",
    "version",
    "resource_type",
    "parameters",
    "updates",
    "actions",
    "guard",
    "quota",
    "approval",
    "steps",
    "provisioner",
    "outputs",
    "expiry",
];

/// Every part is read even after a mistake in an earlier one, so that all mistakes are told at once.
fn read(
    sheet: &mut Sheet,
    id: &str,
    digest: String,
    root: &Node,
    folder: &Path,
    site: &Site,
) -> Option<Offering> {
    let name = Name::parse(id).map_err(|rule| {
        sheet.note(Place::START, format!("the folder's name is the offering's ID, and {rule}"));
    });
    let top = sheet.members(root, "an offering", FIELDS);
    let title = sheet.needed_text(&top, "title", 100).filter(|title| one_line(sheet, &top, "title", title));
    let description = sheet.needed_text(&top, "description", 2000);
    let category =
        sheet.needed_text(&top, "category", 60).filter(|text| one_line(sheet, &top, "category", text));
    let version =
        sheet.needed_text(&top, "version", 60).filter(|text| one_line(sheet, &top, "version", text));
    let resource_type = resource_type(sheet, &top, name.as_ref().ok());
    let guard = guard(sheet, &top);
    let quota_cost = top.get("quota").map_or(1, |quota| {
        let quota = sheet.members(quota, "quota", &["cost"]);
        sheet.number(&quota, "cost", (0, 1_000_000), 1)
    });
    let (mut outputs, values) = outputs(sheet, &top);
    let schema =
        sheet.needed(&top, "parameters").and_then(|node| schema(sheet, node, "parameters", PARAMETER));
    let updates = sheet.flag(&top, "updates");
    let actions = action::read(sheet, &top, schema.as_ref());
    let approval = approval::read(sheet, &top, updates, &actions);
    let composite = composite::read(sheet, &top, values, schema.as_ref());
    if let Some(composite) = &composite {
        of_steps(sheet, &top, &mut outputs, composite);
    }
    let expiry = expiry::read(sheet, &top, outputs.public.as_ref(), schema.as_ref());
    let does = Does { updates, actions: actions.keys().map(Name::as_str).collect(), timeout: guard.timeout };
    let provisioner = provisioner(sheet, &top, folder, &does);
    let id = name.ok()?;
    let provisioner: Arc<dyn Provisioner> = match provisioner? {
        Means::Fake => Arc::new(Fake::default()),
        Means::Http(plan) => Arc::new(Http::new(*plan)),
        Means::Kestra(plan) => Arc::new(Kestra::new(*plan)),
        Means::Exec { folder, program } => {
            Arc::new(Exec::new(site, &id, folder, program, guard.timeout, outputs.secret.clone()))
        }
        Means::Steps => Arc::new(Steps),
    };
    Some(Offering {
        resource_type: resource_type?,
        version: version?.to_owned(),
        digest,
        title: title?.to_owned(),
        description: description?.trim().to_owned(),
        category: category?.to_owned(),
        schema: Arc::new(schema?),
        updates,
        actions,
        max_tries: guard.max_tries,
        timeout: guard.timeout,
        retry: guard.retry,
        duplicate_window: guard.duplicate_window,
        quota_cost,
        approval,
        secret_outputs: outputs.secret,
        public_outputs: outputs.public,
        expiry,
        composite: composite.map(Arc::new),
        provisioner,
        id,
    })
}

fn one_line(sheet: &mut Sheet, top: &Members<'_>, name: &str, text: &str) -> bool {
    let good = !text.contains('\n');
    if let (false, Some(node)) = (good, top.get(name)) {
        sheet.note(node.place, format!("{name:?} must be one line"));
    }
    good
}

fn resource_type(sheet: &mut Sheet, top: &Members<'_>, id: Option<&Name>) -> Option<Name> {
    let Some(node) = top.get("resource_type") else {
        return id.cloned();
    };
    let text = sheet.text(node, "resource_type", 100)?;
    Name::parse(text)
        .map_err(|rule| sheet.note(node.place, format!("\"resource_type\" is a name, and {rule}")))
        .ok()
}

struct Guard {
    max_tries: u32,
    timeout: Duration,
    retry: Backoff,
    duplicate_window: Option<Duration>,
}

fn guard(sheet: &mut Sheet, top: &Members<'_>) -> Guard {
    let mut guard = Guard {
        max_tries: DEFAULT_TRIES,
        timeout: DEFAULT_TIMEOUT,
        retry: DEFAULT_RETRY,
        duplicate_window: None,
    };
    let Some(node) = top.get("guard") else {
        return guard;
    };
    let members = sheet.members(node, "guard", &["max_tries", "timeout", "retry", "duplicate_window"]);
    guard.max_tries = sheet.number(&members, "max_tries", (1, 100), DEFAULT_TRIES);
    guard.timeout = span(sheet, &members, "timeout", MAX_TIMEOUT).unwrap_or(DEFAULT_TIMEOUT);
    guard.duplicate_window = span(sheet, &members, "duplicate_window", MAX_WINDOW);
    if let Some(node) = members.get("retry") {
        let members = sheet.members(node, "retry", &["base", "cap"]);
        guard.retry.base = span(sheet, &members, "base", MAX_TIMEOUT).unwrap_or(DEFAULT_RETRY.base);
        guard.retry.cap =
            span(sheet, &members, "cap", MAX_TIMEOUT).unwrap_or(DEFAULT_RETRY.cap.max(guard.retry.base));
        if guard.retry.cap < guard.retry.base {
            sheet.note(node.place, "\"cap\" is the longest wait and must not be less than \"base\"");
        }
    }
    guard
}

pub(super) fn span(
    sheet: &mut Sheet,
    members: &Members<'_>,
    name: &str,
    longest: Duration,
) -> Option<Duration> {
    let node = members.get(name)?;
    let span = match &node.kind {
        Kind::Text(text) => duration(text),
        _ => None,
    };
    let span = span.filter(|span| !span.is_zero() && *span <= longest);
    if span.is_none() {
        let hours = longest.as_secs() / 3600;
        sheet.note(
            node.place,
            format!("{name:?} must be a time such as 500ms, 30s, 10m, 2h or 7d, at most {hours}h"),
        );
    }
    span
}

/// A span of time as settings spell it: a whole number and `ms`, `s`, `m`, `h` or `d`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// The names of outputs that an offering declares.
#[derive(Default)]
struct Outputs {
    public: Option<BTreeSet<String>>,
    secret: BTreeSet<String>,
}

/// The names of outputs, and where the values of a composite's stand.
fn outputs<'n>(sheet: &mut Sheet, top: &Members<'n>) -> (Outputs, Option<&'n Node>) {
    let Some(node) = top.get("outputs") else {
        return (Outputs::default(), None);
    };
    let members = sheet.members(node, "outputs", &["public", "secret", "values"]);
    let mut names = |word: &str| {
        let node = members.get(word)?;
        let Kind::List(items) = &node.kind else {
            sheet.note(node.place, format!("{word:?} must be a list of names of outputs"));
            return None;
        };
        Some(items.iter().filter_map(|item| sheet.text(item, word, 100).map(str::to_owned)).collect())
    };
    let (public, secret) = (names("public"), names("secret").unwrap_or_default());
    let values = members.get("values");
    if let Some(values) = values.filter(|_| top.get("steps").is_none()) {
        sheet.note(
            values.place,
            "only an offering with \"steps\" says what its outputs are; a program answers them",
        );
    }
    (Outputs { public, secret }, values)
}

/// The outputs of an offering with steps are those that it gives values for.
fn of_steps(sheet: &mut Sheet, top: &Members<'_>, outputs: &mut Outputs, composite: &Composite) {
    let place = top.get("outputs").map_or(top.place, |node| node.place);
    if outputs.public.is_some() {
        sheet.note(
            place,
            "of an offering with \"steps\" the \"values\" name its outputs, so it has no \"public\"",
        );
    }
    for secret in
        outputs.secret.iter().filter(|name| !composite.outputs.iter().any(|(known, _)| known == *name))
    {
        sheet.note(place, format!("the secret output {secret:?} has no value under \"values\""));
    }
    let public = composite.outputs.iter().map(|(name, _)| name.clone());
    outputs.public = Some(public.filter(|name| !outputs.secret.contains(name)).collect());
}

/// Reads a schema of parameters, which a program gets in variables with this prefix.
pub(super) fn schema(sheet: &mut Sheet, node: &Node, what: &str, prefix: &str) -> Option<ParameterSchema> {
    let schema = node.value();
    let found = schema_check::mistakes(&schema);
    for (pointer, message) in &found {
        let shown = if pointer.is_empty() { String::new() } else { format!(" (at {pointer})") };
        sheet.note(node.place_of(pointer), format!("{what}: {message}{shown}"));
    }
    variables(sheet, node, &schema, prefix);
    if !found.is_empty() {
        return None;
    }
    ParameterSchema::compile(&schema).map_err(|why| sheet.note(node.place, format!("{what}: {why}"))).ok()
}

/// Every parameter needs an environment variable of its own.
fn variables(sheet: &mut Sheet, node: &Node, schema: &Value, prefix: &str) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|known| known.keys())
    {
        let place = node.place_of(&format!("/properties/{}", name.replace('~', "~0").replace('/', "~1")));
        match variable(prefix, name) {
            None => sheet.note(
                place,
                format!("the parameter {name:?} must be of letters, digits, `_`, `-` and `.`, at most 64"),
            ),
            Some(variable) => {
                if let Some(other) = taken.insert(variable.clone(), name) {
                    let message = format!(
                        "the parameters {other:?} and {name:?} would both be {variable} to a program"
                    );
                    sheet.note(place, message);
                }
            }
        }
    }
}

enum Means {
    Steps,
    Fake,
    Http(Box<http::plan::Plan>),
    Kestra(Box<kestra::Plan>),
    Exec { folder: PathBuf, program: PathBuf },
}

fn provisioner(sheet: &mut Sheet, top: &Members<'_>, folder: &Path, does: &Does<'_>) -> Option<Means> {
    if top.get("steps").is_some() {
        if let Some(node) = top.get("provisioner") {
            sheet.note(node.place, "an offering has either \"steps\" or a \"provisioner\"");
        }
        return Some(Means::Steps);
    }
    let node = sheet.needed(top, "provisioner")?;
    let members = sheet.members(node, "provisioner", &["exec", "http", "kestra", "fake"]);
    let means = [members.get("exec"), members.get("http"), members.get("kestra"), members.get("fake")];
    match means {
        [Some(exec), None, None, None] => {
            let members = sheet.members(exec, "exec", &["program"]);
            let program = sheet.needed(&members, "program")?;
            let text = sheet.text(program, "program", 1000)?;
            match find_program(folder, text) {
                Ok((folder, program)) => Some(Means::Exec { folder, program }),
                Err(why) => {
                    sheet.note(program.place, why);
                    None
                }
            }
        }
        [None, Some(http), None, None] => outside::http(sheet, http, does).map(Box::new).map(Means::Http),
        [None, None, Some(kestra), None] => {
            outside::kestra(sheet, kestra, does).map(Box::new).map(Means::Kestra)
        }
        [None, None, None, Some(fake)] => {
            sheet.members(fake, "fake", &[]);
            Some(Means::Fake)
        }
        _ => {
            if matches!(node.kind, Kind::Map(_)) {
                sheet.note(
                    node.place,
                    "\"provisioner\" must have exactly one of exec, http, kestra and fake (which is for tests)",
                );
            }
            None
        }
    }
}

/// The offering's folder and its program, as absolute paths without links; the program must lie inside.
fn find_program(folder: &Path, text: &str) -> Result<(PathBuf, PathBuf), String> {
    let outside = || format!("the program {text:?} must lie inside the offering's folder");
    let relative = Path::new(text);
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(outside());
    }
    let folder = folder.canonicalize().map_err(|error| format!("the folder cannot be read: {error}"))?;
    let program = folder.join(relative).canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the program {text:?} is missing"),
        _ => format!("the program {text:?} cannot be read: {error}"),
    })?;
    if !program.starts_with(&folder) {
        return Err(outside());
    }
    let about =
        fs::metadata(&program).map_err(|error| format!("the program {text:?} cannot be read: {error}"))?;
    if !about.is_file() {
        return Err(format!("the program {text:?} is not a file"));
    }
    if about.permissions().mode() & 0o111 == 0 {
        return Err(format!("the program {text:?} is not executable; chmod +x makes it so"));
    }
    Ok((folder, program))
}
