//! Entity tags and `If-Match` (RFC 9110, 8.8.3 and 13.1.1): by which version of a resource a change was thought out.

use crate::id::ResourceId;
use std::fmt;

/// The version of one life of a resource, as its `ETag` names it: `"<id>.<version>"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The life.
    pub resource: ResourceId,
    /// Counts what was accepted and what was taken back.
    pub number: i64,
}

impl fmt::Display for Version {
    /// The entity tag, in its quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}.{}\"", self.resource, self.number)
    }
}

/// What `If-Match` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// The header was not sent.
    Absent,
    /// `*`: whatever version there is.
    Any,
    /// One of these opaque tags. Weak ones are left out, since `If-Match` compares strongly and a weak tag never matches.
    Tags(Vec<String>),
    /// Something that is no list of entity tags, and so names no version.
    Malformed,
}

impl IfMatch {
    /// Reads the header's values, one or more, which together are one list.
    #[must_use]
    pub fn read<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let lines: Vec<&[u8]> = values.into_iter().collect();
        if lines.is_empty() {
            return Self::Absent;
        }
        let mut rest = lines.join(&b","[..]);
        if rest.trim_ascii() == b"*" {
            return Self::Any;
        }
        let (mut tags, mut seen) = (Vec::new(), false);
        loop {
            let trimmed = rest.trim_ascii_start();
            // Empty members of a list are allowed (RFC 9110, 5.6.1).
            if let Some(after) = trimmed.strip_prefix(b",") {
                rest = after.to_vec();
                continue;
            }
            if trimmed.is_empty() {
                return if seen { Self::Tags(tags) } else { Self::Malformed };
            }
            let (weak, quoted) = match trimmed.strip_prefix(b"W/") {
                Some(quoted) => (true, quoted),
                None => (false, trimmed),
            };
            let Some(opaque) = quoted.strip_prefix(b"\"") else { return Self::Malformed };
            let Some(end) = opaque.iter().position(|byte| *byte == b'"') else { return Self::Malformed };
            let (tag, after) = (&opaque[..end], opaque[end + 1..].trim_ascii_start());
            if !tag.iter().all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)) {
                return Self::Malformed;
            }
            if !after.is_empty() && after[0] != b',' {
                return Self::Malformed;
            }
            seen = true;
            if !weak {
                tags.push(String::from_utf8_lossy(tag).into_owned());
            }
            rest = after.to_vec();
        }
    }

    /// Whether this version is one of those asked for.
    #[must_use]
    pub fn matches(&self, version: Version) -> bool {
        match self {
            Self::Absent | Self::Any => true,
            Self::Tags(tags) => tags.iter().any(|tag| format!("\"{tag}\"") == version.to_string()),
            Self::Malformed => false,
        }
    }

    /// Whether any version of this life is asked for.
    #[must_use]
    pub fn is_about(&self, resource: ResourceId) -> bool {
        match self {
            Self::Absent | Self::Any => true,
            Self::Tags(tags) => {
                let life = resource.to_string();
                tags.iter().any(|tag| tag.split_once('.').is_some_and(|(known, _)| known == life))
            }
            Self::Malformed => false,
        }
    }
}

impl fmt::Display for IfMatch {
    /// What was asked for, as it may be shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("none"),
            Self::Any => f.write_str("*"),
            Self::Malformed => f.write_str("no entity tag"),
            Self::Tags(tags) if tags.is_empty() => f.write_str("only weak tags, which never match"),
            Self::Tags(tags) => {
                let quoted: Vec<String> = tags.iter().take(8).map(|tag| format!("\"{tag}\"")).collect();
                f.write_str(&quoted.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: i64) -> Version {
        Version { resource: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), number }
    }

    fn read(values: &[&str]) -> IfMatch {
        IfMatch::read(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn a_tag_matches_the_version_it_names_and_no_other() {
        let tag = version(3).to_string();
        assert_eq!(tag, "\"01890a5d-ac96-774b-bcce-b302099a8057.3\"");
        for list in [tag.clone(), format!("\"other\" ,, {tag}"), format!("W/\"x\",{tag} , ")] {
            assert!(read(&[&list]).matches(version(3)), "{list}");
            assert!(!read(&[&list]).matches(version(4)), "{list}");
        }
        assert!(read(&["\"a,b\"", &tag]).matches(version(3)), "several lines are one list");
        assert!(read(&[&tag]).is_about(version(9).resource));
        assert!(!read(&["\"x.3\""]).is_about(version(3).resource));
    }

    #[test]
    fn a_weak_tag_never_matches() {
        let weak = read(&[&format!("W/{}", version(3))]);
        assert_eq!(weak, IfMatch::Tags(Vec::new()));
        assert!(!weak.matches(version(3)));
    }

    #[test]
    fn what_is_no_list_of_tags_names_no_version() {
        for wrong in
            ["", " ", ",", "3", "abc", "\"open", "\"a\" \"b\"", "\"a b\"", "w/\"a\"", "*, \"a\"", "**"]
        {
            assert_eq!(read(&[wrong]), IfMatch::Malformed, "{wrong:?}");
            assert!(!read(&[wrong]).matches(version(3)));
        }
        assert_eq!(read(&[" * "]), IfMatch::Any);
        assert_eq!(read(&[]), IfMatch::Absent);
    }
}
