import { expect, test } from '@jest/globals';
import { filteringText, typedTerm } from './stack-terms.ts';

test.each([
  ['', { before: '', field: null, text: '' }],
  ['web ow', { before: 'web ', field: null, text: 'ow' }],
  ['web owner:', { before: 'web ', field: 'owner', text: '' }],
  ['Tag:env=pr', { before: '', field: 'tag', text: 'env=pr' }],
  ['owner:ada ', { before: 'owner:ada ', field: null, text: '' }],
  ['aws:s3', { before: '', field: null, text: 'aws:s3' }],
])('the term that is typed in %p', (draft, term) => {
  expect(typedTerm(draft)).toEqual(term);
});

test.each([
  ['  web  prod ', 'web prod'],
  ['web owner:', 'web'],
  ['web owner:ada', 'web owner:ada'],
  ['tag:env=pr web', 'web'],
  ['project:', ''],
])('of %p, only complete terms filter', (draft, text) => {
  expect(filteringText(draft)).toBe(text);
});
