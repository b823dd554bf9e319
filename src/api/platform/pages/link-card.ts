import { html, type Markup } from './html.ts';

/** Chat programs that fetch a link to show a preview of it. Many accept any type rather than a page. */
const readers =
  /slackbot|slack-imgproxy|discordbot|twitterbot|facebookexternalhit|linkedinbot|whatsapp|telegrambot|skypeuripreview|mattermost|rocket\.chat|zulip|iframely|embedly/i;
const paths =
  /^\/(?<organization>[^/~#]+)\/(?<project>[^/~#]+)\/(?<stack>[^/~#]+)(?:\/(?<part>updates|previews)\/(?<id>[\w-]{1,36}))?\/?$/;
const maxTitle = 300;

export function isLinkPreview(userAgent: string | undefined): boolean {
  return userAgent !== undefined && readers.test(userAgent);
}

/**
 * Null for pages other than a stack's or an update's. Chat programs have no session, so the card contains only parts of the address, and is
 * the same whether or not anything exists there.
 */
export function linkCard(path: string): Markup | null {
  const { id, organization, part, project, stack } = paths.exec(path)?.groups ?? {};
  if (organization === undefined || project === undefined || stack === undefined) return null;
  // Routing has already decoded the address, up to `#`.
  const name = [organization, project, stack].map(decodeURIComponent).join('/');
  const title = part === 'updates' ? `${name}: update ${id}` : part === 'previews' ? `${name}: preview` : name;
  return html`<meta property="og:site_name" content="Holdfast">
<meta property="og:type" content="website">
<meta property="og:title" content="${title.slice(0, maxTitle)}">
<meta property="og:description" content="A Pulumi stack. Sign in to see it.">
`;
}
