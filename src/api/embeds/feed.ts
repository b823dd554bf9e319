import { html } from '../platform/pages/html.ts';
import type { EntryRow, FeedRow } from './embed-repository.ts';

/** XML 1.0 cannot represent these characters. */
const unwritable = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;
const clean = (text: string): string => text.replace(unwritable, '');

const kinds: Readonly<Record<string, string>> = {
  update: 'Update',
  refresh: 'Refresh',
  destroy: 'Destroy',
  import: 'Import',
  'resource-import': 'Import',
  rename: 'Rename',
};
const outcomes: Readonly<Record<EntryRow['status'], string>> = {
  'not started': 'is waiting',
  running: 'is running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'was cancelled',
};

/** RFC 4287. `base`: the address of the server. */
export function renderFeed(feed: FeedRow, entries: readonly EntryRow[], base: string): string {
  const at = (parts: readonly string[]): string => `${base}/${parts.map(encodeURIComponent).join('/')}`;
  const names = feed.stackId === null ? [feed.organization] : [feed.organization, `${feed.project}`, `${feed.stack}`];
  const changed = entries[0]?.changedAt ?? feed.createdAt;
  const items = entries.map((entry) => {
    const { by, changedAt, createdAt, id, kind, message, project, stack, status, version } = entry;
    const page = [feed.organization, project, stack, ...(version === null ? [] : ['updates', String(version)])];
    const text = clean(message).trim();
    return html`<entry>
<id>urn:uuid:${id}</id>
<title>${clean(`${project}/${stack}: ${kinds[kind] ?? kind}${version === null ? '' : ` ${version}`} ${outcomes[status]}`)}</title>
<link rel="alternate" type="text/html" href="${at(page)}"/>
<published>${createdAt.toISOString()}</published>
<updated>${changedAt.toISOString()}</updated>
<author><name>${clean(by ?? 'unknown')}</name></author>
<category term="${clean(`${kind}-${status.replace(' ', '-')}`)}"/>${text === '' ? null : html`\n<summary type="text">${text}</summary>`}
</entry>`;
  });
  return html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>urn:uuid:${feed.id}</id>
<title>${clean(`Updates of ${names.join('/')}`)}</title>
<updated>${changed.toISOString()}</updated>
<link rel="alternate" type="text/html" href="${at(names)}"/>
<generator>Holdfast</generator>
${items}
</feed>
`.text;
}
