import { hash } from 'node:crypto';
import { html, type Markup } from './html.ts';
import { signInScript } from './script.ts';
import { signInStyle } from './style.ts';

/** `link` changes with the content. */
export interface Asset {
  readonly path: string;
  readonly link: string;
  readonly type: string;
  readonly text: string;
}

function asset(name: string, extension: string, type: string, text: string): Asset {
  const path = `/assets/${name}.${extension}`;
  return { path, link: `${path}?v=${hash('sha256', text).slice(0, 12)}`, type, text };
}

export const styleAsset = asset('sign-in', 'css', 'text/css; charset=utf-8', signInStyle);
export const scriptAsset = asset('sign-in', 'js', 'text/javascript; charset=utf-8', signInScript);

/**
 * Allows only the two files above and the web UI's font, no inline script or style. `formTarget`: another target of a form's redirect,
 * because browsers apply the form policy to redirects, too.
 */
export function pageHeaders(formTarget: string | null = null): Record<string, string> {
  return {
    'content-security-policy': [
      "default-src 'none'",
      "style-src 'self'",
      "script-src 'self'",
      "font-src 'self'",
      "connect-src 'self'",
      `form-action 'self'${formTarget === null ? '' : ` ${formTarget}`}`,
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    // With no-referrer, browsers would leave the origin out of forms.
    'referrer-policy': 'same-origin',
  };
}

/** The name mark, as in src/web/platform/ui/mark.tsx. */
const mark = html`<svg width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M12 3v17.5M12 8.5c0 6-7 4.5-7 12M12 8.5c0 6 7 4.5 7 12M2.5 20.5h19"/></svg>`;

/** `tabTitle`: screen readers say it first. */
export function renderPage(title: string, body: Markup, tabTitle = title): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${tabTitle} - Holdfast</title>
<link rel="stylesheet" href="${styleAsset.link}">
<script src="${scriptAsset.link}" defer></script>
</head>
<body>
<header><a class="brand" href="/">${mark}Holdfast</a></header>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`.text;
}

/** Announced by screen readers. */
export function renderProblem(message: string | null): Markup {
  return message === null ? html`` : html`<p class="problem" role="alert">${message}</p>`;
}

/** `signIn`: the address for signing in; null: the user is signed in. */
export function renderErrorPage(message: string, signIn: string | null): string {
  const way =
    signIn === null
      ? html`<a href="/account">Go to your account</a>`
      : html`<a href="${signIn}">Go to the sign-in page</a>`;
  return renderPage('This did not work', html`${renderProblem(message)}<p>${way}</p>`);
}
