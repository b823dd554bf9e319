import { createStored } from '../ui/stored-value.ts';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

/** Also read by public/theme.js, before the first paint. */
const chosen = createStored(
  'holdfast.theme',
  (stored): Theme => (stored === 'light' || stored === 'dark' ? stored : 'system'),
  {
    apply: (theme) => {
      const { dataset } = document.documentElement;
      if (theme === 'system') delete dataset['theme'];
      else dataset['theme'] = theme;
    },
  },
);

export const chooseTheme = chosen.set;
export const useTheme = chosen.use;
