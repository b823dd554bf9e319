import type { GivenSettings } from '../../shared/platform/config/settings-file.ts';

/** The answers for `holdfast setup`. An empty value removes a setting. */
export interface SetupAnswers {
  readonly settings: GivenSettings;
  /** The first admin, and organization, in a database that is not embedded. */
  readonly admin: string | null;
  readonly organization: string;
}

/** Options of the command, with the settings that they set. */
export const settingOptions = [
  ['--database <url>', 'URL of a Postgres, or "embedded": its own, in the data directory', 'HOLDFAST_DATABASE_URL'],
  ['--data-dir <directory>', 'directory for what is not in Postgres or S3', 'HOLDFAST_DATA_DIR'],
  ['--bucket <name>', 'S3 bucket, or "none": files in the data directory', 'HOLDFAST_S3_BUCKET'],
  ['--s3-endpoint <url>', 'S3 server other than AWS', 'HOLDFAST_S3_ENDPOINT'],
  ['--s3-region <region>', 'region of the bucket', 'HOLDFAST_S3_REGION'],
  ['--listen <address>', 'address and port of the service', 'HOLDFAST_LISTEN'],
  ['--management-listen <address>', 'address and port of metrics and health', 'HOLDFAST_MANAGEMENT_LISTEN'],
  ['--public-url <url>', 'URL under which people reach the service', 'HOLDFAST_PUBLIC_URL'],
  ['--tls-cert <file>', 'certificate of the service, in PEM format', 'HOLDFAST_TLS_CERT_FILE'],
  ['--tls-key <file>', 'its private key', 'HOLDFAST_TLS_KEY_FILE'],
  ['--trusted-proxies <addresses>', 'proxies that terminate TLS, comma-separated', 'HOLDFAST_TRUSTED_PROXIES'],
] as const;

const unset: Readonly<Record<string, string>> = { HOLDFAST_DATABASE_URL: 'embedded', HOLDFAST_S3_BUCKET: 'none' };

/** The value of a setting, from the value of its option. */
export function settingFrom(setting: string, given: string): string {
  return given === unset[setting] ? '' : given;
}

/** The settings with these changes. An empty value removes a setting. */
export function withChanges(settings: GivenSettings, changes: GivenSettings): GivenSettings {
  return Object.fromEntries(Object.entries({ ...settings, ...changes }).filter(([, value]) => value !== ''));
}
