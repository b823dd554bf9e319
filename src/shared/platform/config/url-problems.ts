import type { Settings } from './settings.ts';

type Given = Partial<Settings>;

const servers = ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL'] as const;
const services = [
  'HOLDFAST_S3_ENDPOINT',
  'HOLDFAST_PUBLIC_URL',
  'HOLDFAST_OIDC_ISSUER',
  'HOLDFAST_AUDIT_EXPORT_URL',
] as const;

/** Quotes nothing, because any part of a wrong URL may belong to a password. */
export function urlProblems(settings: Given): string[] {
  return [...servers, ...services].flatMap((name) => {
    const url = settings[name];
    // Other schemes are reported elsewhere.
    if (typeof url !== 'string' || !/^[a-z+]+:\/\/\S+$/.test(url)) return [];
    const problem = servers.some((each) => each === name) ? serverProblem(url) : serviceProblem(url);
    // Paths are appended to this URL.
    const isBase = name !== 'HOLDFAST_PUBLIC_URL' || !/[?#]/.test(url);
    return problem === null && isBase ? [] : [`${name}: ${problem ?? 'must be without a query and a fragment'}`];
  });
}

/** A proxy may remove the path, but pages link to others without it. */
export function pathWarnings({ publicUrl }: { readonly publicUrl: string }): string[] {
  if (new URL(publicUrl).pathname === '/') return [];
  return [
    'HOLDFAST_PUBLIC_URL: pages and sign-in do not work under a path (only the CLI does); use a host name or port without a path',
  ];
}

/** The URL may have a login and several hosts. */
function serverProblem(url: string): string | null {
  const encode =
    'is not a valid URL; encode special characters of user and password (/ as %2F, ? as %3F, # as %23, @ as %40, % as %25)';
  const [, scheme = '', authority = '', rest = ''] = /^([a-z+]+):\/\/([^/?#]*)(.*)$/.exec(url) ?? [];
  const login = authority.slice(0, Math.max(authority.lastIndexOf('@'), 0));
  // Outside of values in the query, an @ ends a password that contains a character which ends an authority.
  if (rest.replace(/([?&][^=&#@]*=)[^&#]*/g, '$1').includes('@') || rest.includes('#')) return encode;
  if (login === '' && !authority.startsWith('@') && authority.split(',').some(isNoHost)) return encode;
  const isSingle = /^rediss?$/.test(scheme);
  if (isSingle && !URL.canParse(url)) return encode;
  // node-postgres accepts a % that encodes nothing.
  const isLenient = /^postgres(ql)?$/.test(scheme) && /%(?![0-9a-f]{2})/i.test(url);
  return isLenient || isEncoded(login) ? null : encode;
}

/** A text without a login, but with a colon that begins no port, is a login without a host. */
function isNoHost(text: string): boolean {
  return text.includes(':') && !/^(\[[^\]]*\]|[^:]*)(:\d+)?$/.test(text);
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** The URL appears in logs and lists, so it must have no login. */
function serviceProblem(url: string): string | null {
  const parsed = URL.parse(url);
  if (parsed === null) return 'is not a valid URL';
  return parsed.username === '' && parsed.password === '' ? null : 'must be without a user and a password';
}
