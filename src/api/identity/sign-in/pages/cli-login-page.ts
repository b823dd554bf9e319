import type { Session } from '../../../platform/http/request.ts';
import { html } from '../../../platform/pages/html.ts';
import { renderPage } from '../../../platform/pages/page.ts';
import type { CliLogin } from '../cli-login-service.ts';

export function renderCliLoginPage({ description, nonce, port }: CliLogin, { login }: Session): string {
  return renderPage(
    'Log in the Pulumi CLI?',
    html`<p>A command on this computer requests an access token with all permissions of <strong>${login}</strong>.</p>
<p class="code">${description || 'no description'}</p>
<p class="quiet">Continue only if you have just run <code>pulumi login</code> on this computer.</p>
<form method="post" action="/cli-login">
<input type="hidden" name="cliSessionPort" value="${port}">
<input type="hidden" name="cliSessionNonce" value="${nonce}">
<input type="hidden" name="cliSessionDescription" value="${description}">
<button class="main">Log in the CLI</button>
</form>
<p><a href="/account">Do not log in the CLI</a></p>`,
  );
}

export function renderWelcomePage(): string {
  return renderPage(
    'The Pulumi CLI is logged in',
    html`<p>You can close this page and continue in the terminal.</p>
<p><a href="/account">Your sessions</a></p>`,
  );
}
