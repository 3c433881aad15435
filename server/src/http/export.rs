//! Lists as files: which format a call asks for, and how an export is sent while it is read.

use super::{
    problem::{Refusal, Result},
    query::{texts, wrong},
    state::AppState,
};
use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use domain::search::Search;
use futures_util::stream;
use portal::{
    Caller,
    service::{Export, ExportFormat, ListOf, RequestQuery},
    zone::Zone,
};

/// The parameter by which a link asks for a format; a header is beyond a link.
const FORMAT: &str = "format";
/// The parameter that leaves, of all that one may see, what one asked for oneself.
const MINE: &str = "mine";
/// The parameter that names the zone of the times in a CSV file.
const ZONE: &str = "zone";

/// The requests that an address asks for: as a page, or all of them as a file.
pub(crate) async fn listed(
    state: &AppState,
    caller: &Caller,
    scope: ListOf,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response> {
    let (scope, pairs) = narrowed(scope, texts(uri)?)?;
    let Asked { format, zone, search } = Asked::read(pairs, headers)?;
    let query = RequestQuery { scope, search };
    let Some(format) = format else {
        let page = state.portal.requests(caller, query).await?;
        return Ok(([(header::CACHE_CONTROL, "no-store")], Json(page)).into_response());
    };
    Ok(sent(state.portal.export(caller, query, format, zone).await?, format))
}

/// Whose requests an address asks for, and the rest of it. Of a team's list there is no such choice.
fn narrowed(scope: ListOf, mut pairs: Vec<(String, String)>) -> Result<(ListOf, Vec<(String, String)>)> {
    if !matches!(scope, ListOf::All) {
        return Ok((scope, pairs));
    }
    let scope = match taken(&mut pairs, MINE)?.as_deref() {
        None | Some("false") => scope,
        Some("true") => ListOf::Mine,
        Some(_) => return Err(wrong(MINE, "is true or false")),
    };
    Ok((scope, pairs))
}

/// What an address and a header ask for.
struct Asked {
    /// None is a page as JSON.
    format: Option<ExportFormat>,
    /// The zone of the times in a CSV file.
    zone: Zone,
    search: Search,
}

impl Asked {
    fn read(mut pairs: Vec<(String, String)>, headers: &HeaderMap) -> Result<Self> {
        let (format, zone) = (taken(&mut pairs, FORMAT)?, taken(&mut pairs, ZONE)?);
        let search = Search::read(pairs).map_err(|error| Refusal(error.into()))?;
        let format = match format.as_deref() {
            None => accepted(headers),
            Some("json") => None,
            Some("csv") => Some(ExportFormat::Csv),
            Some("ndjson") => Some(ExportFormat::Ndjson),
            Some(_) => return Err(wrong(FORMAT, "is json, csv or ndjson")),
        };
        if zone.is_some() && format != Some(ExportFormat::Csv) {
            return Err(wrong(ZONE, "goes with format=csv only; times in JSON are UTC"));
        }
        Ok(Self { format, zone: Zone::read(zone.as_deref())?, search })
    }
}

/// The value of a parameter that may be given once, taken out of the others.
fn taken(pairs: &mut Vec<(String, String)>, name: &str) -> Result<Option<String>> {
    let mut values = pairs.extract_if(.., |(known, _)| known == name).map(|(_, value)| value);
    let first = values.next();
    if values.next().is_some() { Err(wrong(name, "is given more than once")) } else { Ok(first) }
}

/// The format that is named in `Accept` with the greatest weight; of several, the first. Whatever is not known here, and
/// anything at all, is JSON.
fn accepted(headers: &HeaderMap) -> Option<ExportFormat> {
    let mut best = (0.0, None);
    for range in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for one in range.split(',') {
            let mut parts = one.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "text/csv" => Some(ExportFormat::Csv),
                "application/x-ndjson" => Some(ExportFormat::Ndjson),
                _ => None,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f64>().ok());
            let weight = weight.unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, format);
            }
        }
    }
    best.1
}

/// An export as a response. Each part is read when the one before has gone out; a caller who hangs up ends it, and a part
/// that cannot be read breaks the connection off, so that nobody takes a beginning for all of it.
fn sent(export: Export, format: ExportFormat) -> Response {
    let parts = stream::try_unfold(export, async |mut export| {
        let part =
            export.next().await.inspect_err(|error| tracing::warn!(%error, "an export was broken off"))?;
        Ok::<_, portal::Error>(part.map(|part| (Bytes::from(part), export)))
    });
    let kind = match format {
        ExportFormat::Csv => "text/csv; charset=utf-8; header=present",
        ExportFormat::Ndjson => "application/x-ndjson",
    };
    let name = match format {
        ExportFormat::Csv => "attachment; filename=\"requests.csv\"",
        ExportFormat::Ndjson => "attachment; filename=\"requests.ndjson\"",
    };
    let mut response = Body::from_stream(parts).into_response();
    for (header, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, name),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(header, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, accept: Option<&str>) -> Result<Option<ExportFormat>> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, accept.parse().unwrap());
        }
        let pairs = texts(&format!("/api/v1/requests?{query}").parse().unwrap())?;
        Asked::read(pairs, &headers).map(|asked| asked.format)
    }

    #[test]
    fn a_file_is_sent_to_who_asks_for_one_only() {
        use ExportFormat::{Csv, Ndjson};
        for (accept, format) in [
            (None, None),
            (Some("*/*"), None),
            (Some("application/json"), None),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), None),
            (Some("text/csv"), Some(Csv)),
            (Some("TEXT/CSV; charset=utf-8"), Some(Csv)),
            (Some("application/x-ndjson, application/json;q=0.5"), Some(Ndjson)),
            (Some("application/json, text/csv;q=0.9"), None),
            (Some("application/json;q=0.2, text/csv; q=0.9"), Some(Csv)),
            (Some("text/csv;q=0"), None),
        ] {
            assert_eq!(asked("", accept).unwrap(), format, "{accept:?}");
        }
        assert_eq!(asked("format=csv&q=a", None).unwrap(), Some(Csv));
        assert_eq!(asked("format=ndjson", Some("application/json")).unwrap(), Some(Ndjson));
        assert_eq!(asked("format=json", Some("text/csv")).unwrap(), None);
        for bad in ["format=xml", "format=", "format=csv&format=csv", "format=csv&sort=name"] {
            assert!(asked(bad, None).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_zone_is_that_of_a_file_for_a_spreadsheet_only() {
        assert_eq!(asked("format=csv&zone=Asia/Kolkata", None).unwrap(), Some(ExportFormat::Csv));
        assert!(asked("zone=Asia/Kolkata", Some("text/csv")).is_ok());
        for bad in [
            "zone=UTC",
            "format=ndjson&zone=UTC",
            "format=csv&zone=Nowhere/Land",
            "format=csv&zone=UTC&zone=UTC",
        ] {
            assert!(asked(bad, None).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_list_of_all_can_be_narrowed_to_ones_own() {
        let pairs = |word: &str| vec![("mine".to_owned(), word.to_owned()), ("q".to_owned(), "a".to_owned())];
        let (scope, rest) = narrowed(ListOf::All, pairs("true")).unwrap();
        assert!(matches!(scope, ListOf::Mine) && rest.len() == 1);
        assert!(matches!(narrowed(ListOf::All, pairs("false")).unwrap().0, ListOf::All));
        let (scope, rest) = narrowed(ListOf::Team("blue".into()), pairs("true")).unwrap();
        assert!(matches!(scope, ListOf::Team(_)) && rest.len() == 2, "which the search then refuses");
        assert!(narrowed(ListOf::All, pairs("yes")).is_err());
        assert!(narrowed(ListOf::All, [pairs("true"), pairs("true")].concat()).is_err());
    }
}
