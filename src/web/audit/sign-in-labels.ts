import type { AuditItem } from '../platform/app/contract.ts';

/** How the actor of an event signed in. */
export const signInLabels: Readonly<Record<AuditItem['signIn'], string>> = {
  token: 'a personal token',
  'team-token': 'a team token',
  'organization-token': 'an organization token',
  'service-token': 'a service token',
  'id-token': 'a trusted CI run',
  session: 'a browser session',
  password: 'a password',
  passkey: 'a passkey',
  provider: 'the identity provider',
  link: 'a sign-in link',
  'system-user': 'a command on the server',
  lease: 'the update itself',
  none: 'no sign-in',
};
