import { expect, test } from '@jest/globals';
import { failureMarkdown } from './failure-markdown.ts';
import { cutLines, findLines, groupMessages, linesOf, messagesAsText, placeOfLine } from './message-lines.ts';
import { UpdateProgress } from './update-progress.ts';
import { parseUpdateSearch } from './update-search.ts';

const urn = 'urn:pulumi:dev::shop::aws:s3/bucketV2:BucketV2::logs';

function said(...messages: { readonly urn?: string; readonly message: string }[]) {
  const progress = new UpdateProgress();
  for (const [at, diagnosticEvent] of messages.entries())
    progress.add({ sequence: at + 10, timestamp: 0, diagnosticEvent: { severity: 'error', ...diagnosticEvent } });
  return groupMessages(progress);
}

test('lines of messages have ids that do not depend on colors, and are found by their text', () => {
  const groups = said({ message: 'one\n<{%fg 1%}>two\r\nTH<{%reset%}>REE\n' }, { urn, message: 'four\nthree' });
  const [first] = groups[0]?.diagnostics ?? [];
  expect(first && linesOf(first).map(({ id, spans }) => [id, spans.map(({ text }) => text).join('')])).toEqual([
    ['10-1', 'one'],
    ['10-2', 'two'],
    ['10-3', 'THREE'],
  ]);
  expect(findLines(groups, ' three')).toEqual(['10-3', '11-2']);
  expect(findLines(groups, ' ')).toEqual([]);
  expect(messagesAsText(groups)).toBe(
    `1970-01-01T00:00:00.000Z error\none\ntwo\nTHREE\n\n1970-01-01T00:00:00.000Z error ${urn}\nfour\nthree\n`,
  );
});

test('a part of the lines of a long log is shown, around the line of an address', () => {
  const debug = Array.from({ length: 20_000 }, (_, at) => ({ message: `line ${at}\nsecond\n` }));
  const groups = said(...debug, { urn, message: 'a\nb\nc' });
  const shown = (from: number, count: number) => {
    const { groups: found, total } = cutLines(groups, { from, count });
    const lines = found.flatMap(({ messages }) =>
      messages.flatMap((each) => linesOf(each.diagnostic).slice(each.from, each.until)),
    );
    return { total, urns: found.map((group) => group.urn), ids: lines.map(({ id }) => id) };
  };
  expect(shown(0, 1_000).ids).toHaveLength(1_000);
  expect(shown(0, 3)).toEqual({ total: 40_003, urns: [null], ids: ['10-1', '10-2', '11-1'] });
  expect(shown(39_999, 3)).toEqual({ total: 40_003, urns: [null, urn], ids: ['20009-2', '20010-1', '20010-2'] });
  for (const id of ['10-1', '11-2', '20010-3']) expect(shown(placeOfLine(groups, id), 1).ids).toEqual([id]);
  expect(shown(placeOfLine(groups, '20010-99'), 9).ids).toEqual(['20010-3']);
  expect(placeOfLine(groups, '9-1')).toBe(-1);
});

test('a line in an address is a message and a line, or nothing', () => {
  expect(parseUpdateSearch({ line: '12-3', wrap: 0 })).toMatchObject({ line: '12-3', wrap: '0' });
  expect(parseUpdateSearch({ line: '"]' }).line).toBeUndefined();
});

test('no message ends its block in the Markdown of a failure', () => {
  const report = failureMarkdown({
    ...{ title: 'Update 2 of acme/shop/dev', url: 'https://x/2', facts: ['Commit: abc'] },
    errors: [
      { urn: 'a`b', message: '<{%fg 1%}>bad\n````\nmore<{%reset%}>' },
      { urn: null, message: 'end' },
    ],
  });
  expect(report).toBe(
    [
      '[Update 2 of acme/shop/dev](https://x/2) failed.\n\n- Commit: abc',
      "`a'b`\n\n`````text\nbad\n````\nmore\n`````",
      '```text\nend\n```',
    ].join('\n\n'),
  );
});

test.each([
  [21, '1 more error.'],
  [22, '2 more errors.'],
])('the Markdown of %s errors ends with the number of the others', (count, end) => {
  const errors = Array.from({ length: count }, () => ({ urn: null, message: 'bad' }));
  expect(failureMarkdown({ title: 'Update 2', url: 'https://x/2', facts: [], errors }).split('\n\n').at(-1)).toBe(end);
});
