import { expect, test } from '@jest/globals';
import { eventLine, headerLine } from './audit-formats.ts';
import type { ListedEventRow } from './audit-list-repository.ts';

const event: ListedEventRow = {
  number: 7,
  occurredAt: new Date('2026-03-01T10:00:00.123Z'),
  micros: 0,
  action: 'stack.delete',
  outcome: 'refused',
  actor: 'user',
  login: 'eve',
  tokenId: null,
  tokenName: '=cmd|x',
  signIn: 'token',
  role: 'viewer',
  grantedBy: '',
  address: '203.0.113.9',
  userAgent: 'a "b", c',
  ciRun: '{"system":"GitHub Actions"}',
  object: 'o/p/s',
  updateId: null,
  requestId: 'r',
  details: '{"reason":"a=b\\nc"}',
};

test('CSV quotes values where needed, and no value runs as a formula', () => {
  expect(headerLine('csv').split(',').length).toBe(18);
  expect(eventLine('csv', event, '1')).toBe(
    [
      "7,2026-03-01T10:00:00.123Z,stack.delete,refused,Refused: Deleted a stack: o/p/s,eve,203.0.113.9,,'=cmd|x,token,viewer,,o/p/s,,r",
      '"a ""b"", c","{""system"":""GitHub Actions""}","{""reason"":""a=b\\nc""}"\r\n',
    ].join(','),
  );
});

test('CEF escapes the separators of its fields', () => {
  const line = eventLine('cef', { ...event, object: 'o|p=s\\t' }, '1.0');
  expect(line).toMatch(
    /^CEF:0\|Holdfast\|Holdfast\|1\.0\|stack\.delete\|Refused: Deleted a stack: o\\\|p=s\\\\t\|6\|rt=1772359200123 /,
  );
  expect(line).toContain('cs1=o|p\\=s\\\\t ');
  expect(line).not.toContain('cs3=');
});

test('a JSON line has details as an object', () => {
  expect(JSON.parse(eventLine('jsonl', event, '1'))).toMatchObject({
    number: 7,
    user: 'eve',
    ciRun: { system: 'GitHub Actions' },
    details: { reason: 'a=b\nc' },
  });
});
