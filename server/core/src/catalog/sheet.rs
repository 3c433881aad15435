//! Reads the members of a mapping one by one and notes every mistake, instead of stopping at the first.

use super::{
    Mistake,
    yaml::{Kind, Member, Node, Place},
};

/// The file being read and what was found wrong with it.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) file: String,
    pub(super) mistakes: Vec<Mistake>,
}

impl Sheet {
    pub(super) fn of(file: String) -> Self {
        Self { file, mistakes: Vec::new() }
    }

    /// Notes a mistake.
    pub(super) fn note(&mut self, place: Place, message: impl Into<String>) {
        let (file, message) = (self.file.clone(), message.into());
        self.mistakes.push(Mistake { file, line: place.line, column: place.column, message });
    }

    /// The members of a mapping that may hold only these; unknown ones are noted.
    pub(super) fn members<'n>(&mut self, node: &'n Node, what: &'n str, known: &[&str]) -> Members<'n> {
        let mut members: &[Member] = &[];
        if let Kind::Map(those) = &node.kind {
            members = those;
        } else {
            self.note(node.place, format!("{what} must be a mapping, not {}", node.word()));
        }
        for member in members.iter().filter(|member| !known.contains(&member.name.as_str())) {
            let name = &member.name;
            self.note(
                member.place,
                format!("{what} has no field {name:?}; it may have {}", known.join(", ")),
            );
        }
        Members { what, place: node.place, is_map: matches!(node.kind, Kind::Map(_)), all: members }
    }

    /// A text that must be there, of at most `longest` characters.
    pub(super) fn needed_text<'n>(
        &mut self,
        members: &Members<'n>,
        name: &str,
        longest: usize,
    ) -> Option<&'n str> {
        let node = self.needed(members, name)?;
        self.text(node, name, longest)
    }

    /// A field that must be there.
    pub(super) fn needed<'n>(&mut self, members: &Members<'n>, name: &str) -> Option<&'n Node> {
        let found = members.get(name);
        if found.is_none() && members.is_map {
            self.note(members.place, format!("{} needs the field {name:?}", members.what));
        }
        found
    }

    /// A text that is neither blank nor longer than `longest` characters and holds nothing that cannot be seen.
    pub(super) fn text<'n>(&mut self, node: &'n Node, name: &str, longest: usize) -> Option<&'n str> {
        let Kind::Text(text) = &node.kind else {
            let hint =
                if matches!(node.kind, Kind::Number(_) | Kind::Bool(_)) { "; put it in quotes" } else { "" };
            self.note(node.place, format!("{name:?} must be a text, not {}{hint}", node.word()));
            return None;
        };
        let fault = if text.trim().is_empty() {
            "must not be empty".to_owned()
        } else if text.chars().count() > longest {
            format!("has at most {longest} characters")
        } else if text.chars().any(|c| c.is_control() && c != '\n') {
            "must not hold control characters".to_owned()
        } else {
            return Some(text);
        };
        self.note(node.place, format!("{name:?} {fault}"));
        None
    }

    /// True or false; false without it.
    pub(super) fn flag(&mut self, members: &Members<'_>, name: &str) -> bool {
        match members.get(name).map(|node| (node.place, &node.kind)) {
            None => false,
            Some((_, Kind::Bool(yes))) => *yes,
            Some((place, _)) => {
                self.note(place, format!("{name:?} must be true or false"));
                false
            }
        }
    }

    /// A whole number within bounds, or what holds without one.
    pub(super) fn number(
        &mut self,
        members: &Members<'_>,
        name: &str,
        bounds: (u32, u32),
        otherwise: u32,
    ) -> u32 {
        let Some(node) = members.get(name) else {
            return otherwise;
        };
        let number = match &node.kind {
            Kind::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        number.filter(|number| (bounds.0..=bounds.1).contains(number)).unwrap_or_else(|| {
            self.note(
                node.place,
                format!("{name:?} must be a whole number from {} to {}", bounds.0, bounds.1),
            );
            otherwise
        })
    }
}

/// The members of one mapping.
#[derive(Debug)]
pub(super) struct Members<'n> {
    what: &'n str,
    pub(super) place: Place,
    is_map: bool,
    all: &'n [Member],
}

impl<'n> Members<'n> {
    /// The value of a field; an empty one counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        let member = self.all.iter().find(|member| member.name == name)?;
        (!matches!(member.value.kind, Kind::Null)).then_some(&member.value)
    }
}
