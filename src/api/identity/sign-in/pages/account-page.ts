import type { Session } from '../../../platform/http/request.ts';
import { html, type Markup } from '../../../platform/pages/html.ts';
import { renderPage, renderProblem } from '../../../platform/pages/page.ts';
import type { ListedPasskeyRow } from '../passkey-service.ts';
import type { ListedSessionRow } from '../session-service.ts';

/** What the account page shows. */
export interface AccountView {
  readonly session: Session;
  readonly sessions: readonly ListedSessionRow[];
  readonly hasPassword: boolean;
  /** Null where browsers have none for this server. */
  readonly passkeys: readonly ListedPasskeyRow[] | null;
  readonly problem?: string | null;
}

/** The own sessions, and the change of the password. */
export function renderAccountPage({ hasPassword, passkeys, problem = null, session, sessions }: AccountView): string {
  return renderPage(
    'Your account',
    html`${renderProblem(problem)}
<p>You are signed in as <strong>${session.login}</strong>.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>
<h2>Where you are signed in</h2>
<ul>${sessions.map((each) => renderSession(each, each.id === session.id))}</ul>
<form method="post" action="/account/sign-out-everywhere"><button>Sign out everywhere</button></form>
<p class="quiet">This does not end access tokens, such as that of the CLI.</p>
${passkeys === null ? null : renderPasskeys(passkeys)}
${hasPassword ? renderPasswordForm() : null}`,
  );
}

function renderSession({ address, id, lastSeenAt, method, userAgent }: ListedSessionRow, isThis: boolean): Markup {
  return html`<li><span>${userAgent || 'unknown browser'}<br><span class="quiet">${address}, by ${method}, last used <time>${lastSeenAt.toISOString().slice(0, 16).replace('T', ' ')}</time> UTC</span></span>
${isThis ? html`<span class="quiet">this browser</span>` : html`<form method="post" action="/account/end-session"><input type="hidden" name="session" value="${id}"><button class="small">End</button></form>`}</li>`;
}

function renderPasskeys(passkeys: readonly ListedPasskeyRow[]): Markup {
  const rows = passkeys.map(
    ({
      createdAt,
      credentialId,
      lastUsedAt,
      name,
    }) => html`<li><span>${name}<br><span class="quiet">added ${day(createdAt)}, ${lastUsedAt === null ? 'not used yet' : `last used ${day(lastUsedAt)}`}</span></span>
<form method="post" action="/account/passkeys/remove"><input type="hidden" name="passkey" value="${credentialId}"><button class="small">Remove</button></form></li>`,
  );
  return html`<h2>Passkeys</h2>
<ul>${rows}</ul>
<div hidden>
<label>Name of a new passkey <input id="passkey-name" maxlength="60" value="passkey"></label>
<button id="passkey-add" type="button">Add a passkey</button>
</div>
<p id="passkey-problem" class="problem" role="alert" hidden></p>`;
}

function day(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function renderPasswordForm(): Markup {
  return html`<h2>Change the password</h2>
<form method="post" action="/account/password">
<label>Present password <input name="present" type="password" autocomplete="current-password" required maxlength="512"></label>
<label>New password <input name="next" type="password" autocomplete="new-password" required minlength="12" maxlength="256"></label>
<button>Change the password</button>
<p class="quiet">Ends all other sessions.</p>
</form>`;
}
