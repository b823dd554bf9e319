import type { Session } from '../../../platform/http/request.ts';
import { html, type Markup } from '../../../platform/pages/html.ts';
import { renderPage, renderProblem } from '../../../platform/pages/page.ts';
import type { InvitationRow } from '../../invitation-service.ts';
import type { ListedPasskeyRow } from '../passkey-service.ts';
import type { ListedSessionRow } from '../session-service.ts';
import { programName } from './program-name.ts';

export interface AccountView {
  readonly session: Session;
  readonly sessions: readonly ListedSessionRow[];
  readonly hasPassword: boolean;
  /** Null if browsers cannot have passkeys for this server. */
  readonly passkeys: readonly ListedPasskeyRow[] | null;
  readonly invitations: readonly Pick<InvitationRow, 'organization' | 'role' | 'invitedBy' | 'expiresAt'>[];
  readonly memberships: readonly Membership[];
  readonly problem?: string | null;
}

interface Membership {
  readonly organization: string;
  readonly role: string;
  /** Null unless groups of the provider have given the role. */
  readonly mappedRole: string | null;
}

export function renderAccountPage({
  hasPassword,
  invitations,
  memberships,
  passkeys,
  problem = null,
  session,
  sessions,
}: AccountView): string {
  return renderPage(
    'Your account',
    html`${renderProblem(problem)}
<p>You are signed in as <strong>${session.login}</strong>.</p>
${session.method === 'link' && !hasPassword ? renderFirstPassword(passkeys) : null}
<form method="post" action="/sign-out"><button>Sign out</button></form>
${invitations.length === 0 ? null : renderInvitations(invitations)}
${memberships.length === 0 ? null : renderMemberships(memberships)}
<h2>Where you are signed in</h2>
<ul>${sessions.map((each) => renderSession(each, each.id === session.id))}</ul>
${sessions.length < 2 ? null : html`<form method="post" action="/account/end-session"><input type="hidden" name="session" value="others"><button>Sign out all other browsers</button></form>`}
<form method="post" action="/account/sign-out-everywhere"><button>Sign out everywhere</button></form>
<p class="quiet">This does not end access tokens, such as that of the CLI.</p>
${passkeys === null ? null : renderPasskeys(passkeys, hasPassword)}
${hasPassword ? renderPasswordForm() : null}`,
  );
}

/** A person who has signed in with a link would otherwise need another link the next time. */
function renderFirstPassword(passkeys: AccountView['passkeys']): Markup {
  if (passkeys !== null && passkeys.length > 0) return html``;
  return html`<h2>Choose how to sign in from now on</h2>
<form method="post" action="/account/password">
<label>Password <input name="next" type="password" autocomplete="new-password" required minlength="12" maxlength="256"></label>
<button class="main">Set the password</button>
</form>
<p class="quiet">${passkeys === null ? '' : 'Or add a passkey below. '}<a href="/">Continue without</a></p>`;
}

function renderInvitations(invitations: AccountView['invitations']): Markup {
  return html`<h2 id="invitations">Invitations</h2>
<p class="quiet">As a member you are listed in the organization with your name, and its admins see your e-mail address and what you do there. You can leave again.</p>
<ul>${invitations.map(
    ({
      expiresAt,
      invitedBy,
      organization,
      role,
    }) => html`<li><span>${organization}, as ${role}<br><span class="quiet">from ${invitedBy}, until ${day(expiresAt)}</span></span>
<span><form method="post" action="/account/invitations/accept"><input type="hidden" name="organization" value="${organization}"><button class="small" aria-label="Accept ${organization}">Accept</button></form>
<form method="post" action="/account/invitations/decline"><input type="hidden" name="organization" value="${organization}"><button class="small" aria-label="Decline ${organization}">Decline</button></form></span></li>`,
  )}</ul>`;
}

function renderMemberships(memberships: readonly Membership[]): Markup {
  return html`<h2>Organizations</h2>
<ul>${memberships.map(
    ({ mappedRole, organization, role }) => html`<li><span>${organization}<br><span class="quiet">${role}</span></span>
<details><summary aria-label="Leave ${organization}">Leave…</summary>
<p class="quiet">You lose access to its stacks, your teams and grants there, and your running updates. ${mappedRole === null ? 'You need a new invitation to return.' : 'Your groups at the identity provider add you again when you sign in with it.'}</p>
<form method="post" action="/account/leave"><input type="hidden" name="organization" value="${organization}"><button class="small">Leave ${organization}</button></form></details></li>`,
  )}</ul>`;
}

function renderSession({ address, id, lastSeenAt, method, userAgent }: ListedSessionRow, isThis: boolean): Markup {
  return html`<li><span title="${userAgent}">${programName(userAgent)}<br><span class="quiet">${address}, by ${method}, last used <time datetime="${lastSeenAt.toISOString()}">${minute.format(lastSeenAt)} UTC</time></span></span>
${isThis ? html`<span class="quiet">this browser</span>` : html`<form method="post" action="/account/end-session"><input type="hidden" name="session" value="${id}"><button class="small" aria-label="End ${programName(userAgent)}, ${address}">End</button></form>`}</li>`;
}

function renderPasskeys(passkeys: readonly ListedPasskeyRow[], hasPassword: boolean): Markup {
  const isLastWay = passkeys.length === 1 && !hasPassword;
  const rows = passkeys.map(
    ({
      createdAt,
      credentialId,
      lastUsedAt,
      name,
    }) => html`<li><span>${name}<br><span class="quiet">added ${day(createdAt)}, ${lastUsedAt === null ? 'not used yet' : `last used ${day(lastUsedAt)}`}</span></span>
<details><summary aria-label="Remove ${name}">Remove…</summary>
<p class="quiet">${isLastWay ? 'It is your only passkey, and you have no password. Unless you sign in with an identity provider, you then need a sign-in link of an operator.' : 'You cannot sign in with it again.'}</p>
<form method="post" action="/account/passkeys/remove"><input type="hidden" name="passkey" value="${credentialId}"><button class="small">Remove ${name}</button></form></details></li>`,
  );
  return html`<h2>Passkeys</h2>
<ul>${rows}</ul>
<div hidden>
<label>Name of a new passkey <input id="passkey-name" maxlength="60" value="passkey"></label>
<button id="passkey-add" type="button">Add a passkey</button>
</div>
<p id="passkey-problem" class="problem" role="alert" hidden></p>`;
}

const minute = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

function day(time: Date): string {
  return date.format(time);
}

function renderPasswordForm(): Markup {
  return html`<h2>Change the password</h2>
<form method="post" action="/account/password">
<label>Current password <input name="present" type="password" autocomplete="current-password" required maxlength="512"></label>
<label>New password <input name="next" type="password" autocomplete="new-password" required minlength="12" maxlength="256"></label>
<button>Change the password</button>
<p class="quiet">Ends all other sessions.</p>
</form>`;
}
