import { expect, test } from '@jest/globals';
import { html } from './html.ts';

test('values are escaped, markup and lists of it are not', () => {
  const value = `<script>"'&`;
  expect(html`<p title="${value}">${value}</p>${null}`.text).toBe(
    '<p title="&#60;script&#62;&#34;&#39;&#38;">&#60;script&#62;&#34;&#39;&#38;</p>',
  );
  expect(html`<ul>${[html`<li>${'<'}</li>`, html`<li>2</li>`]}</ul>`.text).toBe('<ul><li>&#60;</li>\n<li>2</li></ul>');
});
