import { expect, test } from '@jest/globals';
import { forgeLink, repositoryLink, safeLink } from './safe-link.ts';

test('follows web addresses only', () => {
  expect(safeLink(' https://ci.example/run/1?a=b ')).toBe('https://ci.example/run/1?a=b');
  expect(safeLink('http://ci.internal:8080/')).toBe('http://ci.internal:8080/');
  for (const bad of [
    ...[
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'java\nscript:alert(1)',
      ' javascript:alert(1)',
      'data:text/html,x',
    ],
    ...['vbscript:x', 'file:///etc/passwd', '//evil.example', '/relative', '', 'https://bank.example@evil.example/'],
    ...[`https://x.example/${'a'.repeat(3000)}`, null, undefined],
  ]) {
    expect(safeLink(bad)).toBeNull();
  }
});

test('finds the page of a repository or commit', () => {
  expect(repositoryLink('git@github.com:acme/web.git')).toBe('https://github.com/acme/web');
  expect(repositoryLink('https://git.example/acme/web.git', 'abcdef0')).toBe(
    'https://git.example/acme/web/commit/abcdef0',
  );
  expect(repositoryLink('javascript:alert(1)', 'abcdef0')).toBeNull();
  expect(forgeLink('github.com', 'acme/web', 'abcdef0')).toBe('https://github.com/acme/web/commit/abcdef0');
  expect(forgeLink('evil.example/x?', 'acme/web')).toBeNull();
  expect(forgeLink(null, 'git@github.com:acme/web.git')).toBe('https://github.com/acme/web');
  expect(repositoryLink('https://git.example/acme/web', '../../evil')).toBeNull();
  expect(repositoryLink(null)).toBeNull();
});
