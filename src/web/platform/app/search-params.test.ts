import { describe, expect, test } from '@jest/globals';
import { parseSearch, stringifySearch } from './search-params.ts';

describe('the search of a URL', () => {
  test('stays text', () => {
    expect(parseSearch('?text=12&tag=%7B%7D&project=true')).toEqual({ text: '12', tag: '{}', project: 'true' });
  });

  test('leaves out what is empty', () => {
    expect(stringifySearch({ text: '', project: undefined, tag: null })).toBe('');
  });

  test('is the same after a round', () => {
    const search = { text: 'a b&c=d#é', tag: 'team:payments' };
    expect(parseSearch(stringifySearch(search))).toEqual(search);
  });
});
