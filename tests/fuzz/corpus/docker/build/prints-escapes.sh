#!/bin/sh
printf '\033[2J'
exit 1
