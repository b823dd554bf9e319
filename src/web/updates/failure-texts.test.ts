import { expect, test } from '@jest/globals';
import { failureMarkdown } from './failure-markdown.ts';
import { findLines, groupMessages, linesOf, messagesAsText } from './message-lines.ts';
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
