import { readFileSync } from 'node:fs';

export function readConfigPassphrase(env: NodeJS.ProcessEnv = process.env): string | null {
  const { PULUMI_CONFIG_PASSPHRASE: text, PULUMI_CONFIG_PASSPHRASE_FILE: file } = env;
  const passphrase = text ?? (file ? readFileSync(file, 'utf8').trim() : '');
  return passphrase === '' ? null : passphrase;
}
