import { expect, test } from '@jest/globals';
import { linkCard } from './link-card.ts';

test('a card has the names of the address, decoded', () => {
  expect(linkCard('/acme/web%20site/prod/updates/12')?.text).toContain('content="acme/web site/prod: update 12"');
});

// Routing decodes an address up to `#`.
test.each(['/a/b/c#%zz', '/a/b/c#', '/a/b#/c'])('a path that routing has not decoded has no card: %s', (path) => {
  expect(linkCard(path)).toBeNull();
});
