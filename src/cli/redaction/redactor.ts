import { secretSettings } from '../../shared/platform/config/settings.ts';
import { type GivenSettings, settingsOfEnvironment } from '../../shared/platform/config/settings-file.ts';

const hidden = '[redacted]';
/** Shorter secrets are not replaced, because they would hide parts of ordinary words. */
const leastLength = 4;

/** Words that name a secret. */
const secretName =
  '(?:password|passwd|passphrase|secret|token|credential|signature|authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|master[-_]?keys?)';
const isSecret = new RegExp(secretName, 'i');
/** A private key, which may span several lines. */
const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g;
/** A quotation mark, which may be escaped inside quoted JSON. */
const quote = '(?:\\\\*")';

/** Patterns of secrets, wherever they occur. */
const shapes: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, hidden],
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>]+@/gi, `$1${hidden}@`],
  [/\b(?:hf|pul|GOCSPX|pypi|xapp|xox[a-z]|sk|rk|pk)[-_][A-Za-z0-9_-]{8,}/g, hidden],
  [/\bgl(?:agent|cbt|dt|ft|imt|pat|ptt|rt|rtr|soat)-[A-Za-z0-9_-]{8,}/g, hidden],
  [/\b(?:gh[a-z]|github_pat|npm|dop_v1|dckr_pat)_[A-Za-z0-9_]{10,}/g, hidden],
  // URLs of webhooks whose path is the secret.
  [/(\/(?:hooks\.slack\.com|discord(?:app)?\.com\/api|[\w-]+\.webhook\.office\.com)\/)[^\s"'<>\\]+/gi, `$1${hidden}`],
  [/\bhv[a-z]\.[A-Za-z0-9_-]{8,}/g, hidden],
  [/\b(?:AKIA|ASIA|AROA)[A-Z0-9]{12,}/g, hidden],
  [/\bAIza[\w-]{20,}/g, hidden],
  [/\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, hidden],
  [/AGE-(?:SECRET-KEY|PLUGIN)-[A-Z0-9-]+/gi, hidden],
  // 32 bytes in base64, with or without padding; digests and keys of other lengths; long random words.
  [/[A-Za-z0-9+/_-]{43}=/g, hidden],
  [/\b[0-9a-fA-F]{40,}\b/g, hidden],
  [/(?<![\w/+-])(?=[\w+-]*\d)(?=[\w+-]*[a-z])(?=[\w+-]*[A-Z])[\w+-]{32,}/g, hidden],
];

/** Positions whose values are secrets: headers, parameters and members with a secret name. */
const secretPositions: readonly (readonly [RegExp, string])[] = [
  [
    new RegExp(
      `(\\b(?:proxy-)?authorization|(?:set-)?cookie)(${quote}?\\s*[:=]\\s*)(?:${quote}(?:[^"\\\\]|\\\\(?!"))*|[^\\n"]*)`,
      'gi',
    ),
    `$1$2${hidden}`,
  ],
  [
    new RegExp(
      `([\\w.-]*${secretName}[\\w-]*)(${quote}?\\s*[:=]\\s*)(${quote}(?:[^"\\\\]|\\\\(?!"))*|'[^'\\n]*'|[^\\s,;&"'}\\]]+)`,
      'gi',
    ),
    `$1$2${hidden}`,
  ],
  [/([?&](?:sig|code|state|key|nonce|x-amz-[a-z-]+)=)[^&\s"'\\]+/gi, `$1${hidden}`],
  [/\b(Bearer|Basic|Digest|update-token)\s+[^\s"'\\,]+/g, `$1 ${hidden}`],
  [/\b(token)\s+(?=\S*\d)[^\s"'\\,]{8,}/g, `$1 ${hidden}`],
];

/** Hides secrets in text that leaves this machine: known secrets, and text that looks like a secret. */
export class Redactor {
  readonly #known: readonly string[];

  constructor(settings: GivenSettings = settingsOfEnvironment(), others: readonly (string | null)[] = []) {
    const access = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];
    const whole = [...secretSettings, ...access].map((name) => settings[name]);
    const parts = [...Object.values(settings), ...others].flatMap((value) => (value ? partsOf(value) : []));
    const all = [...whole, ...others, ...parts].filter((value) => typeof value === 'string');
    const long = [...new Set(all.flatMap(formsOf))].filter((each) => each.length >= leastLength);
    // The longest first, because a secret may contain another one.
    this.#known = long.sort((one, other) => other.length - one.length);
  }

  /** For our own sentences: hides known secrets, logins in URLs, and text that looks like a token. */
  sentence(text: string): string {
    return applied(
      shapes,
      this.#known.reduce((rest, secret) => rest.replaceAll(secret, hidden), text),
    );
  }

  /** For any other text. */
  text(text: string): string {
    return applied(secretPositions, this.sentence(text));
  }

  /** For the lines of a log. */
  lines(lines: readonly string[]): string[] {
    const text = lines.join('\n').replace(privateKey, hidden);
    return text.split('\n').map((line) => this.text(line));
  }

  /** A copy of JSON data with all texts redacted, and with all members redacted whose names denote secrets. */
  data(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.data(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        this.text(name),
        typeof member === 'string' && isSecret.test(name) ? hidden : this.data(member),
      ]),
    );
  }
}

function applied(rules: readonly (readonly [RegExp, string])[], text: string): string {
  return rules.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}

/** Passwords and tokens within a URL, and keys within a key ring. */
function partsOf(value: string): string[] {
  const parts = [...value.matchAll(/[^,:]+:([A-Za-z0-9+/]{43}=)/g)].map(([, key]) => key as string);
  const login = /^[a-z0-9+.-]+:\/\/([^@]*)@/i.exec(value)?.[1];
  if (login !== undefined) parts.push(login, ...login.split(':').slice(1));
  for (const [, parameter] of value.matchAll(/[?&][\w.-]*(?:password|token|key|secret)[\w.-]*=([^&]+)/gi))
    parts.push(parameter as string);
  return parts;
}

/** The forms of a secret in URLs, in JSON and in base64. */
function formsOf(secret: string): string[] {
  const forms = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  try {
    forms.push(decodeURIComponent(secret));
  } catch {
    // The text is not encoded.
  }
  if (secret.length >= 8) forms.push(Buffer.from(secret).toString('base64').replace(/=+$/, ''));
  return forms;
}
