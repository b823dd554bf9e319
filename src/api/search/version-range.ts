/** `6`, `6.1`, or a whole version. */
interface VersionPrefix {
  readonly parts: readonly number[];
  readonly prerelease: readonly string[];
}

/** Half-open: from `from` on, before `before`. Null: no limit. */
export interface VersionRange {
  readonly from: Version | null;
  readonly before: Version | null;
}

/** Without the build, which does not affect the order. */
export interface Version {
  readonly numbers: readonly [number, number, number];
  readonly prerelease: readonly string[];
  /** `first`: before all versions that begin like this. `last`: directly behind this version. */
  readonly edge: 'first' | 'last';
}

const versionPattern =
  /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:\.\*|\.x)?(?:-([0-9A-Za-z.-]{1,100}))?(?:\+[0-9A-Za-z.-]{1,100})?$/;

/** Reads `6`, `6.1`, `6.1.2`, `<6`, `>=6.1`, `6.1..6.4`. A prefix stands for all versions that begin with it: `>6` means 7.0.0 or newer. */
export function parseVersionRange(text: string): VersionRange | null {
  const [low = '', high, ...rest] = text.split('..');
  if (rest.length > 0) return null;
  if (high !== undefined) {
    const [from, to] = [parsePrefix(low), parsePrefix(high)];
    return from && to && { from: lowest(from), before: behind(to) };
  }
  const [, operator = '', operand = ''] = /^(<=|>=|<|>|=|)(.*)$/s.exec(text) ?? [];
  const version = parsePrefix(operand);
  if (version === null) return null;
  if (operator === '<') return { from: null, before: lowest(version) };
  if (operator === '<=') return { from: null, before: behind(version) };
  if (operator === '>') return { from: behind(version), before: null };
  if (operator === '>=') return { from: lowest(version), before: null };
  return { from: lowest(version), before: behind(version) };
}

/** Text that is not a semantic version is in no range. */
export function isInRange(text: string, { before, from }: VersionRange): boolean {
  const prefix = parsePrefix(text);
  if (prefix?.parts.length !== 3) return false;
  const version = lowest(prefix);
  return (
    (from === null || compareVersions(version, from) >= 0) && (before === null || compareVersions(version, before) < 0)
  );
}

/** Invalid versions come first. */
export function compareVersionTexts(a: string, b: string): number {
  const [one, other] = [parsePrefix(a), parsePrefix(b)];
  if (one === null || other === null)
    return Number(one !== null) - Number(other !== null) || (a < b ? -1 : Number(a > b));
  return compareVersions(lowest(one), lowest(other));
}

function parsePrefix(text: string): VersionPrefix | null {
  const match = versionPattern.exec(text);
  if (match === null) return null;
  const parts = [match[1], match[2], match[3]].filter((part) => part !== undefined).map(Number);
  const prerelease = match[4]?.split('.') ?? [];
  return prerelease.length > 0 && parts.length < 3 ? null : { parts, prerelease };
}

/** `6` does not include prereleases of 6.0.0, which are before it. */
function lowest({ parts: [major = 0, minor = 0, patch = 0], prerelease }: VersionPrefix): Version {
  return { numbers: [major, minor, patch], prerelease, edge: 'first' };
}

/** `6.1` ends before the first prerelease of 6.2.0, and `6.1.2` right after itself. */
function behind(prefix: VersionPrefix): Version {
  const [major = 0, minor = 0] = prefix.parts;
  if (prefix.parts.length === 3) return { ...lowest(prefix), edge: 'last' };
  const numbers = prefix.parts.length === 1 ? ([major + 1, 0, 0] as const) : ([major, minor + 1, 0] as const);
  return { numbers, prerelease: ['0'], edge: 'first' };
}

function compareVersions(a: Version, b: Version): number {
  for (const [at, part] of a.numbers.entries()) {
    const other = b.numbers[at] as number;
    if (part !== other) return part - other;
  }
  return comparePrereleases(a.prerelease, b.prerelease) || Number(a.edge === 'last') - Number(b.edge === 'last');
}

/** Semver precedence: a prerelease is before its release, numbers before words, fewer parts before more. */
function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return Number(a.length === 0) - Number(b.length === 0);
  for (const [at, part] of a.entries()) {
    const other = b[at];
    if (other === undefined) return 1;
    if (part === other) continue;
    const [number, otherNumber] = [/^\d+$/.test(part), /^\d+$/.test(other)];
    if (number !== otherNumber) return number ? -1 : 1;
    if (number) return Number(part) - Number(other) || (part < other ? -1 : 1);
    return part < other ? -1 : 1;
  }
  return a.length - b.length;
}
