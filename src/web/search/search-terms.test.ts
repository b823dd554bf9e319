import { expect, test } from '@jest/globals';
import { addTerm, groupTerms, parseResourceSearch, quoteValue } from './search-terms.ts';

test('values are quoted where they need it', () => {
  expect(quoteValue('aws:s3/bucket:Bucket')).toBe('aws:s3/bucket:Bucket');
  expect(quoteValue('a "b" \\c')).toBe('"a \\"b\\" \\\\c"');
  expect(quoteValue('')).toBe('""');
});

test('a term is added once', () => {
  expect(addTerm('', 'name:a')).toBe('name:a');
  expect(addTerm(' db ', 'name:a')).toBe('db name:a');
  expect(addTerm('name:a db', 'name:a')).toBe('name:a db');
  expect(addTerm('name:ab', 'name:a')).toBe('name:ab name:a');
});

test('groups become terms', () => {
  expect(groupTerms('type', 'aws:s3/bucket:Bucket', null)).toBe('type:aws:s3/bucket:Bucket');
  expect(groupTerms('project', 'acme/web', null)).toBe('stack:acme/web/*');
  expect(groupTerms('stack', 'acme/web/prod', null)).toBe('stack:acme/web/prod');
  expect(groupTerms('provider', 'aws', '6.1.0')).toBe('provider:aws version:6.1.0');
  expect(groupTerms('provider', '', null)).toBe('-provider:*');
});

test('the search is read from the URL', () => {
  expect(parseResourceSearch({ q: 'db', view: 'providers', by: 'stack' })).toEqual({
    q: 'db',
    view: 'providers',
    by: 'stack',
  });
  expect(parseResourceSearch({ q: 1, view: 'x', by: 'x' })).toEqual({});
});
