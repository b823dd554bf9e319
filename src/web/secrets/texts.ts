export const secretTexts = {
  copy: (name: string) => `Copy ${name}`,
  hide: 'Hide',
  hideValue: (name: string) => `Hide ${name}`,
  notNow: 'The value cannot be shown at the moment',
  reveal: 'Reveal',
  revealValue: (name: string) => `Reveal ${name}`,
  shownFor: 'Shows the value for 30 seconds. This is recorded in the audit log.',
} as const;
