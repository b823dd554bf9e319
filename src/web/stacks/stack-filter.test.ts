import { describe, expect, test } from '@jest/globals';
import { parseStackFilter, parseTag, toQuery } from './stack-filter.ts';

describe('the filter of stacks in the URL', () => {
  test('drops invalid parameters', () => {
    expect(parseStackFilter({ text: 'web', status: 'broken', project: '', tag: 7, other: 'x' })).toEqual({
      text: 'web',
    });
  });

  test('becomes a query of the organization of the path', () => {
    const search = { text: ' web ', status: 'failed', project: 'api', tag: 'team=payments' } as const;
    expect(toQuery(search, 'acme')).toEqual({
      organization: 'acme',
      text: 'web',
      status: 'failed',
      project: 'api',
      tag: { name: 'team', value: 'payments' },
    });
    expect(toQuery({ text: '  ' }, undefined)).toEqual({});
  });

  test.each([
    ['team', { name: 'team' }],
    ['team=', { name: 'team', value: '' }],
    ['git:repo=a=b', { name: 'git:repo', value: 'a=b' }],
    ['=x', { name: '=x' }],
  ])('reads the tag %s', (tag, expected) => expect(parseTag(tag)).toEqual(expected));
});
