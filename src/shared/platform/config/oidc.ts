import type { Settings } from './settings.ts';

type Given = Partial<Settings>;

/** On this machine, plain HTTP is allowed. */
const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export function oidcProblems(settings: Given): string[] {
  const { HOLDFAST_OIDC_ISSUER: issuer, HOLDFAST_OIDC_CLIENT_ID: clientId } = settings;
  if (issuer === undefined) {
    const needless = Object.keys(settings).find(
      (name) => /^HOLDFAST_OIDC_(CLIENT|ALLOWED|GROUPS_FILE)/.test(name) && settings[name as keyof Given],
    );
    return needless === undefined ? [] : [`${needless}: needs HOLDFAST_OIDC_ISSUER`];
  }
  const problems: string[] = [];
  if (clientId === undefined) problems.push('HOLDFAST_OIDC_CLIENT_ID: needed with HOLDFAST_OIDC_ISSUER');
  // Reported with the problems of other URLs.
  if (!URL.canParse(issuer)) return problems;
  const { hostname, protocol } = new URL(issuer);
  if (protocol !== 'https:' && !loopback.test(hostname))
    problems.push('HOLDFAST_OIDC_ISSUER: must be an https URL; plain HTTP is for providers on this machine');
  if (settings.HOLDFAST_PUBLIC_URL === undefined)
    problems.push('HOLDFAST_PUBLIC_URL: needed with HOLDFAST_OIDC_ISSUER; the provider sends people back to it');
  return problems;
}

export function oidcConfig(settings: Settings) {
  const { HOLDFAST_OIDC_ISSUER: issuer, HOLDFAST_OIDC_CLIENT_ID: clientId } = settings;
  if (issuer === undefined || clientId === undefined) return null;
  return {
    issuer,
    clientId,
    clientSecret: settings.HOLDFAST_OIDC_CLIENT_SECRET ?? null,
    name: settings.HOLDFAST_OIDC_NAME,
    /** Lower case; empty for any domain. */
    allowedDomains: (settings.HOLDFAST_OIDC_ALLOWED_DOMAINS ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean),
    loginClaim: settings.HOLDFAST_OIDC_LOGIN_CLAIM,
    groupsClaim: settings.HOLDFAST_OIDC_GROUPS_CLAIM,
    groupsFile: settings.HOLDFAST_OIDC_GROUPS_FILE ?? null,
    createUsers: settings.HOLDFAST_OIDC_CREATE_USERS,
  } as const;
}
export type OidcConfig = NonNullable<ReturnType<typeof oidcConfig>>;
