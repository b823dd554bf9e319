import { expect, test } from '@jest/globals';
import { ConfigError, parseConfig } from './config.ts';

const issuer = 'https://login.example.com';
const complete = {
  HOLDFAST_OIDC_ISSUER: issuer,
  HOLDFAST_OIDC_CLIENT_ID: 'holdfast',
  HOLDFAST_PUBLIC_URL: 'https://pulumi.example.com',
};

function problemsOf(settings: Readonly<Record<string, string>>): string {
  try {
    parseConfig(settings);
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

test('a provider of identities needs a client, an https address, and a public URL', () => {
  expect(parseConfig({}).oidc).toBeNull();
  expect(parseConfig({ ...complete, HOLDFAST_OIDC_ALLOWED_DOMAINS: 'A.example, b.example' }).oidc).toMatchObject({
    issuer,
    clientSecret: null,
    allowedDomains: ['a.example', 'b.example'],
  });
  expect(problemsOf({ HOLDFAST_OIDC_ISSUER: issuer })).toMatch(/CLIENT_ID: needed[\s\S]*PUBLIC_URL: needed/);
  expect(problemsOf({ ...complete, HOLDFAST_OIDC_ISSUER: 'http://login.example.com' })).toMatch(/must be an https URL/);
  expect(problemsOf({ ...complete, HOLDFAST_OIDC_ISSUER: 'http://127.0.0.1:5000' })).toBe('');
  expect(problemsOf({ HOLDFAST_OIDC_CLIENT_SECRET: 'x' })).toMatch(/CLIENT_SECRET: needs HOLDFAST_OIDC_ISSUER/);
});
