/** Browsers do not send the fragment. */
export function signInLink(publicUrl: string, secret: string): string {
  return `${publicUrl.replace(/\/$/, '')}/sign-in/link#${secret}`;
}
