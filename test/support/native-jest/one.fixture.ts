import { testDisorder } from './disorder.ts';

testDisorder();
