type Search = Readonly<Record<string, unknown>>;

function textOf(search: Search, name: string): string | undefined {
  const value = search[name];
  return typeof value === 'string' && value !== '' ? value.slice(0, 200) : undefined;
}

export const roles = ['viewer', 'member', 'admin'] as const;
export type Role = (typeof roles)[number];

/** The URL search of a list of names. */
export interface TextSearch {
  readonly text?: string | undefined;
}

export function parseTextSearch(search: Search): TextSearch {
  return { text: textOf(search, 'text') };
}

/** The URL search of the list of members. */
export interface MemberSearch extends TextSearch {
  readonly role?: Role | undefined;
}

export function parseMemberSearch(search: Search): MemberSearch {
  return { text: textOf(search, 'text'), role: roles.find((each) => each === search['role']) };
}

/** The URL search of the lists of tokens. */
export interface TokenSearch {
  /** By default the organization, if the user may see its tokens. */
  readonly of?: 'me' | undefined;
  /** Also tokens of CI runs. */
  readonly runs?: '1' | undefined;
}

export function parseTokenSearch(search: Search): TokenSearch {
  return { of: search['of'] === 'me' ? 'me' : undefined, runs: search['runs'] === '1' ? '1' : undefined };
}

export interface AuditSearch {
  readonly action?: string | undefined;
  readonly actor?: string | undefined;
  readonly object?: string | undefined;
  readonly outcome?: 'done' | 'refused' | undefined;
  /** Days, as 2026-01-31. */
  readonly from?: string | undefined;
  readonly until?: string | undefined;
}

const day = /^\d{4}-\d\d-\d\d$/;

/** Reads the filters. Invalid ones are dropped. */
export function parseAuditSearch(search: Search): AuditSearch {
  const dayOf = (name: string): string | undefined => {
    const value = textOf(search, name);
    return value !== undefined && day.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;
  };
  return {
    action: textOf(search, 'action'),
    actor: textOf(search, 'actor'),
    object: textOf(search, 'object'),
    outcome: (['done', 'refused'] as const).find((each) => each === search['outcome']),
    from: dayOf('from'),
    until: dayOf('until'),
  };
}

/** The filters in the form that the server takes. Days are in the `zone` in which times are shown: `until` includes its day. */
export function toAuditQuery({ from, until, ...rest }: AuditSearch, zone: 'UTC' | undefined) {
  const mark = zone === undefined ? '' : 'Z';
  const query = {
    ...rest,
    from: from === undefined ? undefined : new Date(`${from}T00:00:00${mark}`).toISOString(),
    until: until === undefined ? undefined : new Date(`${until}T23:59:59.999${mark}`).toISOString(),
  };
  // The cache distinguishes undefined properties from missing ones.
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as {
    [Name in keyof typeof query]?: Exclude<(typeof query)[Name], undefined>;
  };
}
