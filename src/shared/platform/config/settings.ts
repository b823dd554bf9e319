import { Type } from 'typebox';
import { accessSettings } from './settings/access.ts';
import { limitsSettings } from './settings/limits.ts';
import { serviceSettings } from './settings/service.ts';
import { storesSettings } from './settings/stores.ts';
import { updatesSettings } from './settings/updates.ts';

/**
 * By the names of their environment variables. `docs/settings.md` and `.env.example` are generated from this schema (`npm run settings`).
 */
export const Settings = Type.Object({
  ...serviceSettings,
  ...storesSettings,
  ...accessSettings,
  ...updatesSettings,
  ...limitsSettings,
});

export type Settings = Type.Static<typeof Settings>;
export type SettingName = keyof Settings;

export const secretSettings: readonly SettingName[] = [
  'HOLDFAST_DATABASE_URL',
  'HOLDFAST_DATABASE_REPLICA_URL',
  'HOLDFAST_REDIS_URL',
  'HOLDFAST_MASTER_KEYS',
  'HOLDFAST_OIDC_CLIENT_SECRET',
  'HOLDFAST_VAULT_TOKEN',
  // The URL may contain a token.
  'HOLDFAST_AUDIT_EXPORT_URL',
  'HOLDFAST_AUDIT_EXPORT_TOKEN',
  'HOLDFAST_BUNDLE_PASSPHRASE',
];
