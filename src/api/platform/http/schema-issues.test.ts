import { expect, test } from '@jest/globals';
import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Maybe } from '../protocol/core.ts';
import { describeIssues } from './schema-issues.ts';

const update = Type.Object({
  name: Maybe(Type.String()),
  options: Maybe(Type.Object({ dryRun: Maybe(Type.Boolean()) })),
  tags: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});
const status = Type.Object({
  status: Type.Union(['succeeded', 'failed', 'cancelled'].map((text) => Type.Literal(text))),
});
const count = Type.Object({ count: Type.Integer({ minimum: 1 }), place: Type.String({ format: 'uuid' }) });

test.each<[string, TSchema, unknown, string]>([
  [
    'names the values that are allowed',
    status,
    { status: 'x' },
    'body/status must be "succeeded", "failed" or "cancelled"',
  ],
  ['names missing members', status, {}, 'body must have required properties status'],
  ['does not suggest null for a given value', update, { name: 5 }, 'body/name must be string'],
  ['names the types that are allowed', update, { tags: 5 }, 'body/tags must be string or array'],
  [
    'reports the inner violation, not that the whole could be absent',
    update,
    { options: { dryRun: 'x' } },
    'body/options/dryRun must be boolean',
  ],
  ['reports the same for an optional body', Type.Union([update, Type.Null()]), { name: 5 }, 'body/name must be string'],
  ['asks for null where nothing else is allowed', Type.Null(), {}, 'body must be null'],
  ['lists all places', count, { count: 0, place: 'x' }, 'body/count must be >= 1, body/place must match format "uuid"'],
])('%s', (_name, schema, value, expected) => {
  expect(describeIssues(Compile(schema).Errors(value), 'body')).toBe(expected);
});

test('has a message without issues', () => {
  expect(describeIssues([], 'body')).toBe('body is not valid');
});
