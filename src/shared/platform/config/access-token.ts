export function readAccessToken(env: NodeJS.ProcessEnv = process.env): string | null {
  const token = env['PULUMI_ACCESS_TOKEN']?.trim() ?? '';
  return token === '' ? null : token;
}
