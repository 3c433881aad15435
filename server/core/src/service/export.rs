//! Exports: all that a search finds, page after page, so that whatever its size only one page is held at a time. The one
//! query object of lists says what is found, so an export holds what the list shows.

use super::{Inner, Portal, RequestQuery};
use crate::{
    Caller, Error, Result,
    store::{AuditEntry, ListScope, NO_TEAM, RequestList},
    zone::Zone,
};
use domain::{search::LARGEST_PAGE, view::RequestView};
use serde_json::Value;
use std::sync::Arc;

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Values with commas between and a line of names first (RFC 4180), in UTF-8.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

/// The columns of an export as CSV.
const COLUMNS: [&str; 24] = [
    "id",
    "team",
    "offering",
    "offering_version",
    "type",
    "name",
    "action",
    "state",
    "reason",
    "attempt",
    "requested_by",
    "channel",
    "correlation_id",
    "parent_id",
    "created_at",
    "updated_at",
    "finished_at",
    "labels",
    "parameters",
    "outputs",
    "decision",
    "decided_by",
    "decided_at",
    "decision_reason",
];

/// An export under way. Whoever drops it ends it.
#[derive(Debug)]
pub struct Export {
    portal: Arc<Inner>,
    format: ExportFormat,
    zone: Zone,
    list: RequestList,
    begun: bool,
    done: bool,
}

impl Portal {
    /// Begins an export of all that a search finds, whatever page it is about. It is audited before its first row. The
    /// zone is that of the times in CSV; in JSON they are UTC.
    pub async fn export(
        &self,
        caller: &Caller,
        query: RequestQuery,
        format: ExportFormat,
        zone: Zone,
    ) -> Result<Export> {
        let list = self.0.seen_by(caller, query).await?;
        let search = list.search.from(None).with_size(LARGEST_PAGE);
        let list = RequestList { search, ..list };
        let mut detail = list.search.query();
        if matches!(list.scope, ListScope::RequestedBy(_)) {
            detail = format!("mine=true&{detail}");
        }
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: caller.name.clone(),
            channel: caller.channel.as_str(),
            act: "request_export",
            team: match &list.scope {
                ListScope::Team(team) => team.to_string(),
                _ => NO_TEAM.to_owned(),
            },
            target: format.name().to_owned(),
            detail,
        };
        self.0.store.audit(entry).await?;
        Ok(Export { portal: Arc::clone(&self.0), format, zone, list, begun: false, done: false })
    }
}

impl ExportFormat {
    /// The format's short name, also the ending of a file's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

impl Export {
    /// The next part of it; nothing when it is complete. An error means that it is not.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if self.done {
            return Ok(None);
        }
        let (rows, next) = self.portal.store.request_rows(self.list.clone()).await?;
        let head = !std::mem::replace(&mut self.begun, true);
        self.done = next.is_none();
        self.list.search = std::mem::take(&mut self.list.search).from(next);
        let part = match self.format {
            ExportFormat::Csv => csv(&rows, head, &self.zone),
            ExportFormat::Ndjson => ndjson(&rows),
        };
        part.map(Some)
    }
}

fn ndjson(rows: &[RequestView]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut lines, row).map_err(Error::internal)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn csv(rows: &[RequestView], head: bool, zone: &Zone) -> Result<Vec<u8>> {
    // Everything in quotation marks, so that a semicolon parts nothing where that is the custom.
    let mut lines = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .quote_style(csv::QuoteStyle::Always)
        .from_writer(Vec::new());
    if head {
        lines.write_record(COLUMNS).map_err(Error::internal)?;
    }
    for row in rows {
        lines.write_record(cells(row, zone)?.iter().map(|cell| inert(cell))).map_err(Error::internal)?;
    }
    lines.into_inner().map_err(|error| Error::internal(error.error()))
}

fn cells(row: &RequestView, zone: &Zone) -> Result<[String; COLUMNS.len()]> {
    let json =
        |value: serde_json::Result<Value>| value.map(|value| value.to_string()).map_err(Error::internal);
    let time = |moment: Option<domain::time::Moment>| moment.map(|at| zone.exact(at)).unwrap_or_default();
    // Secret outputs are named, so that their absence is no riddle.
    let mut outputs = row.outputs.clone();
    outputs.extend(row.secret_outputs.iter().map(|name| (name.clone(), Value::from("********"))));
    let approval = row.approval.as_ref();
    let verdict = approval.and_then(|approval| approval.verdict);
    Ok([
        row.id.to_string(),
        row.team.to_string(),
        row.offering.to_string(),
        row.offering_version.clone(),
        row.resource_type.to_string(),
        row.name.to_string(),
        row.action.clone(),
        row.state.to_string(),
        row.reason.clone().unwrap_or_default(),
        row.attempt.to_string(),
        row.requested_by.clone(),
        row.channel.as_str().to_owned(),
        row.correlation_id.clone(),
        row.parent_id.map(|id| id.to_string()).unwrap_or_default(),
        time(Some(row.created_at)),
        time(Some(row.updated_at)),
        time(row.finished_at),
        json(serde_json::to_value(&row.labels))?,
        json(serde_json::to_value(&row.parameters))?,
        json(serde_json::to_value(&outputs))?,
        verdict.map(|verdict| verdict.as_str().to_owned()).unwrap_or_default(),
        approval.and_then(|approval| approval.decided_by.clone()).unwrap_or_default(),
        time(approval.and_then(|approval| approval.decided_at)),
        approval.and_then(|approval| approval.reason.clone()).unwrap_or_default(),
    ])
}

/// A cell that no spreadsheet takes for a formula: one that would be is begun with an apostrophe.
fn inert(cell: &str) -> String {
    const FORMULA: &[char] = &['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    // Blanks before it are skipped by some.
    if cell.starts_with(FORMULA) || cell.trim_start().starts_with(FORMULA) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_made_inert_and_all_else_stays() {
        for formula in
            ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u{a0}=1", "＝1", "-"]
        {
            assert_eq!(inert(formula), format!("'{formula}"));
        }
        for harmless in ["", "a=b", "1-2", "a@b", "'=1", "{\"a\":\"=1\"}", "日本", "a\n=b"] {
            assert_eq!(inert(harmless), harmless);
        }
    }
}
