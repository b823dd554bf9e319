import type { UpdateStatus } from '../../shared/updates/update-state.ts';
import { html } from '../platform/pages/html.ts';

/** `none`: the stack had no update. `unknown`: the address shows no stack. */
export type BadgeStatus = UpdateStatus | 'none' | 'unknown';

const neutral = '#59636e';
/** White text has a contrast of at least 4.5 on each color. */
const views: Readonly<Record<BadgeStatus, readonly [string, string]>> = {
  'not started': ['waiting', '#9a5b00'],
  running: ['running', '#0b62b8'],
  succeeded: ['succeeded', '#1a7038'],
  failed: ['failed', '#c0262d'],
  cancelled: ['cancelled', neutral],
  none: ['no updates', neutral],
  unknown: ['unknown', neutral],
};

const label = 'pulumi';
const charWidth = 6.6;
const padding = 7;

/** The badge contains only the status. */
export function renderBadge(status: BadgeStatus): string {
  const [word, color] = views[status];
  const parts = [label, word].map((text) => ({ text, width: Math.round(text.length * charWidth) + 2 * padding }));
  const [left, right] = parts as [(typeof parts)[0], (typeof parts)[0]];
  const total = left.width + right.width;
  const drawn = (text: string, x: number, width: number) =>
    html`<text x="${x + width / 2}" y="14" textLength="${width - 2 * padding}" lengthAdjust="spacingAndGlyphs">${text}</text>`;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${total}" height="20" role="img" aria-label="${label}: ${word}">
<title>${label}: ${word}</title>
<clipPath id="r"><rect width="${total}" height="20" rx="4"/></clipPath>
<g clip-path="url(#r)"><rect width="${left.width}" height="20" fill="#24292f"/><rect x="${left.width}" width="${right.width}" height="20" fill="${color}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
${drawn(left.text, 0, left.width)}
${drawn(right.text, left.width, right.width)}
</g>
</svg>
`.text;
}
