import { expect, test } from '@jest/globals';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { ResourceRow, withKeys } from './resource-row.tsx';

const urn = 'urn:pulumi:dev::web::aws:s3/bucket:Bucket::b';
const kept = {
  ...{ urn, name: 'b', type: 'aws:s3/bucket:Bucket', protect: false, isDeleted: false },
  ...{ provider: 'aws', providerVersion: '7.0.0', changedIn: 3 },
};
const deleted = { ...kept, isDeleted: true };

test('a resource that is pending deletion is marked, and does not open its replacement', () => {
  const draw = (resource: typeof kept): string =>
    renderToStaticMarkup(createElement(ResourceRow, { resource, isChosen: true, onOpen: () => {} }));
  expect(draw(kept)).toMatch(/^<button.*aria-current="true"/);
  expect(draw(kept)).not.toContain('to be deleted');
  expect(draw(deleted)).toContain('to be deleted');
  expect(draw(deleted)).not.toMatch(/<button|aria-current/);
});

test('rows have different keys, which do not depend on other resources', () => {
  const other = { ...kept, urn: `${urn}2` };
  const keys = (resources: readonly (typeof kept)[]): string[] => withKeys(resources).map(({ key }) => key);
  const all = keys([kept, deleted, deleted, other]);
  expect(new Set(all).size).toBe(4);
  expect(keys([other, deleted, deleted, kept])).toEqual([all[3], all[1], all[2], all[0]]);
});
